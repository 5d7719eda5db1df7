import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { DecodeError } from '../../../src/wire/decode-error.ts'
import { arpProbe, neighbourAdvertisement, readArp } from '../../../src/wire/packet/arp.ts'
import { internetChecksum, readDatagram, writeDatagram } from '../../../src/wire/packet/datagram.ts'

const four = { source: '0.0.0.0', destination: '255.255.255.255', sourcePort: 68, destinationPort: 67 }
const six = { source: 'fe80::1', destination: 'ff02::1:2', sourcePort: 546, destinationPort: 547 }

test('datagrams of both families round-trip, with correct checksums', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 600 }), fc.boolean(), (payload, isFour) => {
      const datagram = { ...(isFour ? four : six), payload }
      const bytes = writeDatagram(datagram)
      const read = readDatagram(Buffer.concat([bytes, Buffer.alloc(7)])) // Ethernet pads
      expect({ ...read, payload: Uint8Array.from(read.payload) }).toEqual(datagram)
      if (isFour) expect(internetChecksum(bytes.subarray(0, 20))).toBe(0)
    }),
  )
})

test('other bytes are refused', () => {
  const good = writeDatagram({ ...four, payload: Buffer.from('abc') })
  for (let length = 0; length < good.length; length++) expect(() => readDatagram(good.subarray(0, length))).toThrow(DecodeError)
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
      for (const read of [readDatagram, readArp])
        try {
          read(bytes)
        } catch (error) {
          expect(error).toBeInstanceOf(DecodeError)
        }
    }),
  )
})

test('a probe has no sender address', () => {
  expect(readArp(arpProbe('02:00:00:00:00:01', '10.0.0.9'))).toEqual({
    operation: 'request',
    senderMac: '02:00:00:00:00:01',
    senderIp: '0.0.0.0',
    targetMac: '00:00:00:00:00:00',
    targetIp: '10.0.0.9',
  })
})

test('an advertisement sets the override flag and has a correct checksum', () => {
  const bytes = Buffer.from(neighbourAdvertisement('02:00:00:00:00:01', 'fd00::9'))
  const pseudo = Buffer.concat([bytes.subarray(8, 40), Buffer.from([0, 0, 0, bytes.length - 40, 0, 0, 0, 58])])
  expect(internetChecksum(pseudo, bytes.subarray(40))).toBe(0)
  expect(bytes[44]).toBe(0x20)
})
