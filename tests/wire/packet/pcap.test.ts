import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { DecodeError } from '../../../src/wire/decode-error.ts'
import { linkType, PcapReader, pcapHeader, pcapRecord } from '../../../src/wire/packet/pcap.ts'
import { packetSummary } from '../../../src/wire/packet/summary.ts'

const time = Date.parse('2026-11-21T12:00:00.123Z') * 1000 + 456

test('a file has the standard header', () => {
  expect(Buffer.from(pcapHeader(linkType.ethernet, 4096)).toString('hex')).toBe('d4c3b2a1020004000000000000000000' + '0010000001000000')
})

test('packets round-trip in pieces of any size', () => {
  const record = fc.record({
    time: fc.integer({ min: 0, max: 4_000_000_000_000_000 }),
    bytes: fc.uint8Array({ maxLength: 200 }),
    length: fc.nat(65535),
  })
  fc.assert(
    fc.property(fc.array(record), fc.integer({ min: 1, max: 50 }), (records, step) => {
      const file = Buffer.concat([pcapHeader(linkType.raw, 65536), ...records.map(pcapRecord)])
      const reader = new PcapReader()
      const found = []
      for (let at = 0; at < file.length; at += step) found.push(...reader.push(file.subarray(at, at + step)))
      expect(found).toEqual(records)
      expect(reader.type).toBe(linkType.raw)
    }),
  )
})

test('damaged files are refused', () => {
  expect(() => new PcapReader().push(new Uint8Array(24))).toThrow(DecodeError)
  const record = Buffer.from(pcapRecord({ time, length: 1, bytes: new Uint8Array(1) }))
  record.writeUInt32LE(0xffff_ffff, 8)
  expect(() => new PcapReader().push(Buffer.concat([pcapHeader(1, 1), record]))).toThrow(DecodeError)
})

const mac = '020000000001020000000002'
test.each([
  [
    'tcp',
    `${mac}0800` +
      '450000340000400040060000' +
      '0a0500010a050002' +
      '9c40192b' +
      '00000001' +
      '00000002' +
      '801800ff' +
      '00000000' +
      '00'.repeat(12),
    'IP 10.5.0.1.40000 > 10.5.0.2.6443: TCP [P.] seq 1 ack 2 win 255 0',
  ],
  ['udp', `${mac}08004500001e00004000401100000a0500010a0500020035115c000a00000000`, 'IP 10.5.0.1.53 > 10.5.0.2.4444: UDP 2'],
  [
    'icmp6',
    `${mac}86dd6000000000083a40${'fd'.padEnd(31, '0')}1${'fd'.padEnd(31, '0')}28700000000000000`,
    'IP6 fd00::1 > fd00::2: ICMP6 type 135 code 0',
  ],
  ['arp', `${mac}080600010800060400010200000000010a0500010000000000000a050002`, 'ARP who has 10.5.0.2, tell 10.5.0.1'],
  ['other', `${mac}88cc0000`, '02:00:00:00:00:02 > 02:00:00:00:00:01: type 0x88cc'],
  ['cut', '0200', 'cut off'],
])('a packet in one line: %s', (_, hex, text) => {
  const bytes = Buffer.from(hex, 'hex')
  expect(packetSummary({ time, bytes, length: 99 }, linkType.ethernet)).toBe(`12:00:00.123456 ${text}, length 99`)
})

test('any bytes can be summarized', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), fc.constantFrom(1, 101), (bytes, type) => {
      expect(packetSummary({ time, bytes, length: bytes.length }, type)).not.toContain('\n')
    }),
  )
})
