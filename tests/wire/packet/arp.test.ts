import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { DecodeError } from '../../../src/wire/decode-error.ts'
import { arpAnnouncement, arpProbe, neighbourAdvertisement, readArp } from '../../../src/wire/packet/arp.ts'

const mac = '02:00:00:00:00:05'

test('a probe queries for an address without claiming one, an announcement claims it', () => {
  expect(readArp(arpProbe(mac, '10.5.0.2'))).toMatchObject({ senderMac: mac, senderIp: '0.0.0.0', targetIp: '10.5.0.2' })
  expect(readArp(arpAnnouncement(mac, '10.5.0.2'))).toMatchObject({ senderMac: mac, senderIp: '10.5.0.2', targetIp: '10.5.0.2' })
})

test('an unsolicited advertisement is ICMPv6 with hop limit 255 and a checksum that holds', () => {
  const packet = Buffer.from(neighbourAdvertisement(mac, 'fd00::5'))
  expect(packet[6]).toBe(58)
  expect(packet[7]).toBe(255)
  // RFC 4443 2.3: the sum over the pseudo header and the message is all ones
  const message = packet.subarray(40)
  const pseudo = Buffer.concat([packet.subarray(8, 40), Buffer.from([0, 0, message.length >> 8, message.length & 255, 0, 0, 0, 58])])
  const all = Buffer.concat([pseudo, message, Buffer.alloc(message.length % 2)])
  let sum = 0
  for (let at = 0; at < all.length; at += 2) sum += all.readUInt16BE(at)
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16)
  expect(sum).toBe(0xffff)
})

test('any bytes decode or are refused', () => {
  const real = arpProbe(mac, '10.5.0.2')
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 64 }),
    fc.nat(real.length).map((end) => Uint8Array.from(real.subarray(0, end))),
  )
  fc.assert(
    fc.property(bytes, (packet) => {
      try {
        readArp(packet)
      } catch (error) {
        if (!(error instanceof DecodeError)) throw error
      }
    }),
  )
})
