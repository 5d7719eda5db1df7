/** Splitting of large packets, and merging of small ones. */
import { describe, expect, test } from 'bun:test'
import { complement, fold, pseudoSum, WordSums } from '../../../src/wire/packet/checksum.ts'
import { internetChecksum, writeDatagram } from '../../../src/wire/packet/datagram.ts'
import { type Merged, PacketMerger } from '../../../src/wire/packet/merge.ts'
import { splitPacket } from '../../../src/wire/packet/split.ts'
import {
  readVirtioHeader,
  segmentation,
  type VirtioHeader,
  virtioHeaderLength,
  writeVirtioHeader,
} from '../../../src/wire/packet/virtio-header.ts'

const sums = new WordSums()

interface Tcp {
  version?: 4 | 6
  sequence?: number
  ack?: number
  flags?: number
  window?: number
  payload?: number
  options?: readonly number[]
  tos?: number
  ttl?: number
  id?: number
  fragment?: number
  port?: number
  source?: number
  reserved?: number
}

/** Bytes that depend on their sequence number, so that a payload in the wrong place is seen. */
const content = (sequence: number, length: number) => Uint8Array.from({ length }, (_, index) => ((sequence + index) * 31 + 7) & 255)

/** A TCP packet with right checksums. */
function tcp({ version = 4, sequence = 1000, ack = 7, flags = 0x10, window = 500, payload = 100, ...rest }: Tcp = {}): Uint8Array {
  const { options = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2], tos = 0, ttl = 64, id = 5, fragment = 0x4000, port = 80, source = 1 } = rest
  const start = version === 4 ? 20 : 40
  const headers = start + 20 + options.length
  const bytes = Buffer.alloc(headers + payload)
  if (version === 4) {
    bytes.set([0x45, tos], 0)
    bytes.writeUInt16BE(bytes.length, 2)
    bytes.writeUInt16BE(id & 0xffff, 4)
    bytes.writeUInt16BE(fragment, 6)
    bytes.set([ttl, 6], 8)
    bytes.set([10, 0, 0, source, 10, 0, 0, 9], 12)
    bytes.writeUInt16BE(internetChecksum(bytes.subarray(0, 20)), 10)
  } else {
    bytes.writeUInt32BE(0x60000000 + tos * 0x100000 + 77, 0)
    bytes.writeUInt16BE(bytes.length - 40, 4)
    bytes.set([6, ttl], 6)
    bytes.set([0xfd, ...Array(14).fill(0), source, 0xfd, ...Array(14).fill(0), 9], 8)
  }
  bytes.writeUInt16BE(4000, start)
  bytes.writeUInt16BE(port, start + 2)
  bytes.writeUInt32BE(sequence >>> 0, start + 4)
  bytes.writeUInt32BE(ack, start + 8)
  bytes.set([((20 + options.length) << 2) | (rest.reserved ?? 0), flags], start + 12)
  bytes.writeUInt16BE(window, start + 14)
  bytes.set(options, start + 20)
  bytes.set(content(sequence, payload), headers)
  bytes.writeUInt16BE(internetChecksum(pseudoHeader(bytes, version), bytes.subarray(start)), start + 16)
  return bytes
}

function pseudoHeader(bytes: Uint8Array, version: number): Uint8Array {
  const start = version === 4 ? 20 : 40
  const head = Buffer.alloc(8)
  head.writeUInt32BE(bytes.length - start)
  head[7] = 6
  return Buffer.concat([version === 4 ? bytes.subarray(12, 20) : bytes.subarray(8, 40), head])
}

/** Packets of one flow, one after another. */
function run(count: number, packet: Tcp = {}, last: Tcp = {}): Uint8Array[] {
  const { sequence = 1000, payload = 100, id = 5 } = packet
  return Array.from({ length: count }, (_, index) =>
    tcp({ ...packet, sequence: sequence + index * payload, id: id + index, ...(index === count - 1 && last) }),
  )
}

function merge(packets: readonly Uint8Array[]): { header: VirtioHeader | undefined; bytes: Uint8Array }[] {
  const merger = new PacketMerger()
  for (const packet of packets) {
    // Padding is behind the packet, and the start is at any address.
    const buffer = new Uint8Array(packet.length + 24)
    const at = packet.length % 5
    buffer.set(packet, at)
    merger.add(buffer, at, packet.length)
  }
  const merged: Merged[] = []
  merger.flush((packet) => merged.push(packet))
  return merged.map(({ header, pieces }) => ({
    header,
    bytes: Buffer.concat(pieces.map(({ buffer, at, length }) => buffer.subarray(at, at + length))),
  }))
}

function split(header: VirtioHeader | undefined, packet: Uint8Array): Uint8Array[] {
  const size = virtioHeaderLength + packet.length
  const buffer = new Uint8Array(3 + size + 70_000)
  writeVirtioHeader(buffer.subarray(3), header)
  buffer.set(packet, 3 + virtioHeaderLength)
  const packets: Uint8Array[] = []
  const out = { place: () => 3 + size, take: (at: number, length: number) => packets.push(buffer.slice(at, at + length)) }
  splitPacket(buffer, 3, size, sums, out)
  return packets
}

const again = (packets: readonly Uint8Array[]) => merge(packets).flatMap(({ header, bytes }) => split(header, bytes))
const plain = (packets: readonly Uint8Array[]) => packets.map((packet) => Buffer.from(packet).toString('hex'))

describe('sums', () => {
  test('are those of RFC 1071 at any address and length', () => {
    const bytes = crypto.getRandomValues(new Uint8Array(300))
    for (let shift = 0; shift < 5; shift++)
      for (let from = 0; from < 9; from++)
        for (let length = 0; length < 40; length++) {
          const view = bytes.subarray(shift)
          const expected = internetChecksum(view.subarray(from, from + length))
          expect(complement(sums.sum(view, from, from + length))).toBe(expected)
        }
  })

  test('of many large words do not overflow', () => {
    const bytes = new Uint8Array(65_535).fill(255)
    expect(sums.sum(bytes, 0, bytes.length)).toBe(fold(0xffff * 32_767 + 0xff00))
    expect(sums.sum(bytes, 1, bytes.length)).toBe(0xffff)
  })
})

describe.each([4, 6] as const)('TCP over IPv%d', (version) => {
  const merged = (packets: readonly Uint8Array[]) => merge(packets).length

  test('is merged, and split into the same packets', () => {
    for (const packets of [
      run(2, { version }),
      run(40, { version, payload: 1368 }),
      run(5, { version, payload: 99, options: [] }),
      run(5, { version, payload: 1000 }, { payload: 1 }),
      run(5, { version, tos: 2, ttl: 3 }, { flags: 0x18 }),
      run(4, { version, sequence: 0xffffff00 }),
      run(4, { version, id: 0xfffe, fragment: 0 }),
    ]) {
      expect(merged(packets)).toBe(1)
      expect(plain(again(packets))).toEqual(plain(packets))
    }
  })

  test('is one large packet with a partial checksum', () => {
    const [one] = merge(run(3, { version }, { flags: 0x18 }))
    const start = version === 4 ? 20 : 40
    const kind = version === 4 ? segmentation.tcp4 : segmentation.tcp6
    expect(one?.header).toEqual({
      ...{ partialChecksum: true, segmentation: kind, headerLength: start + 32, segment: 100, checksumStart: start, checksumOffset: 16 },
    })
    const bytes = Buffer.from(one?.bytes ?? [])
    expect(bytes.length).toBe(start + 32 + 300)
    expect(bytes[start + 13]).toBe(0x18)
    expect(bytes.subarray(start + 32)).toEqual(Buffer.from(content(1000, 300)))
    expect(bytes.readUInt16BE(start + 16)).toBe(pseudoSum(sums, bytes, 0, version, bytes.length - start))
    if (version === 4) expect(internetChecksum(bytes.subarray(0, 20))).toBe(0)
  })

  test('of two flows in turns is merged by flow, in order', () => {
    const [a, b] = [run(4, { version, port: 1 }), run(4, { version, port: 2 })]
    const mixed = a.flatMap((packet, index) => [packet, b[index] ?? packet])
    expect(merged(mixed)).toBe(2)
    expect(plain(again(mixed))).toEqual(plain([...a, ...b]))
  })

  test.each<[string, Tcp]>([
    ['another acknowledgement', { ack: 8 }],
    ['another window', { window: 501 }],
    ['another class of traffic', { tos: 4 }],
    ['another hop limit', { ttl: 63 }],
    ['other options', { options: [1, 1, 8, 10, 0, 0, 0, 2, 0, 0, 0, 2] }],
    ['no options', { options: [] }],
    ['another port', { port: 81 }],
    ['another source', { source: 2 }],
    ['more payload', { payload: 101 }],
    ['a gap before it', { sequence: 1101 }],
    ['the same sequence number', { sequence: 1000 }],
    ['no payload', { payload: 0 }],
    ...[0x11, 0x12, 0x14, 0x30, 0x50, 0x90, 0x08].map((flags): [string, Tcp] => [`flags ${flags}`, { flags }]),
    ['a reserved bit', { reserved: 1 }],
  ])('with %s is not merged', (_, change) => {
    const packets = [tcp({ version }), tcp({ version, sequence: 1100, id: 6, ...change })]
    expect(merged(packets)).toBe(2)
    expect(plain(again(packets))).toEqual(plain(packets))
    expect(merged([...packets, tcp({ version, sequence: 1100, id: 6 })])).toBeGreaterThanOrEqual(2)
  })

  test('with a wrong checksum is not merged', () => {
    for (const wrong of [0, 1]) {
      const packets = run(2, { version })
      const bytes = packets[wrong] ?? expect.unreachable()
      bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1
      expect(merged(packets)).toBe(2)
      expect(plain(again(packets))).toEqual(plain(packets))
    }
  })

  test('is not merged behind PSH, a short packet or one without payload', () => {
    expect(merged([tcp({ version, flags: 0x18 }), tcp({ version, sequence: 1100, id: 6 })])).toBe(2)
    const short = [
      tcp({ version }),
      tcp({ version, sequence: 1100, id: 6, payload: 50 }),
      tcp({ version, sequence: 1150, id: 7, payload: 50 }),
    ]
    expect(merged(short)).toBe(2)
    expect(merged([tcp({ version }), tcp({ version, payload: 0, ack: 9 }), tcp({ version, sequence: 1100, id: 6 })])).toBe(3)
  })

  test('is never longer than an IP packet can be', () => {
    const packets = run(100, { version, payload: 1300 })
    const all = merge(packets)
    for (const { bytes } of all) expect(bytes.length).toBeLessThanOrEqual(65_535)
    expect(all).toHaveLength(2)
    expect(plain(again(packets))).toEqual(plain(packets))
  })

  test('of many flows is kept in order', () => {
    const flows = Array.from({ length: 40 }, (_, port) => run(2, { version, port }))
    const packets = [...flows.map(([first]) => first), ...flows.map(([, second]) => second)].map((packet) => packet ?? expect.unreachable())
    expect(plain(again(packets)).sort()).toEqual(plain(packets).sort())
  })

  test('with FIN and PSH has them in the last packet', () => {
    const large = tcp({ version, payload: 250, flags: 0x19 | 0x80 })
    const kind = version === 4 ? segmentation.tcp4 : segmentation.tcp6
    // Without a partial checksum, as a packet that is forwarded may be.
    const none = { partialChecksum: false, headerLength: 0, checksumStart: 0, checksumOffset: 0 }
    const packets = split({ ...none, segmentation: kind, segment: 100 }, large)
    const flags = [0x90, 0x10, 0x19]
    expect(plain(packets)).toEqual(
      plain(
        flags.map((flag, index) =>
          tcp({ version, sequence: 1000 + index * 100, id: 5 + index, payload: index === 2 ? 50 : 100, flags: flag }),
        ),
      ),
    )
  })
})

describe('other packets', () => {
  const address = { source: '10.0.0.1', destination: '10.0.0.2', sourcePort: 1, destinationPort: 2 }
  const datagram = Uint8Array.from(writeDatagram({ ...address, payload: Buffer.from('payload') }))
  const partial = { partialChecksum: true, segmentation: 0, headerLength: 0, segment: 0, checksumStart: 20, checksumOffset: 6 }

  test('pass as they are', () => {
    const fragment = tcp({ fragment: 0x2000 })
    const packets = [
      datagram,
      fragment,
      tcp({ fragment: 0x2000, sequence: 1100 }),
      Uint8Array.of(0x45),
      Uint8Array.of(0x60, 1),
      new Uint8Array(1),
    ]
    expect(merge(packets).every(({ header }) => header === undefined)).toBe(true)
    expect(plain(again(packets))).toEqual(plain(packets))
  })

  test('get their checksum', () => {
    const bytes = Buffer.from(datagram)
    const head = Buffer.from([0, 17, 0, bytes.length - 20])
    bytes.writeUInt16BE(~internetChecksum(bytes.subarray(12, 20), head) & 0xffff, 26)
    expect(plain(split(partial, bytes))).toEqual(plain([datagram]))
  })

  test('with a header that names no place in them are dropped', () => {
    expect(split({ ...partial, checksumStart: datagram.length - 7 }, datagram)).toEqual([])
    for (const change of [{ segment: 0 }, { segmentation: 3 }, { segmentation: segmentation.tcp6 }])
      expect(split({ ...partial, segmentation: segmentation.tcp4, segment: 10, ...change }, tcp())).toEqual([])
    expect(split({ ...partial, segmentation: segmentation.tcp4, segment: 10 }, datagram)).toEqual([])
    expect(split({ ...partial, segmentation: segmentation.tcp4, segment: 10 }, tcp().subarray(0, 45))).toEqual([])
  })
})

test('a header is read as it was written', () => {
  const header = { partialChecksum: true, segmentation: 4, headerLength: 72, segment: 1348, checksumStart: 40, checksumOffset: 16 }
  const bytes = new Uint8Array(virtioHeaderLength)
  writeVirtioHeader(bytes, header)
  expect(readVirtioHeader(bytes, 0)).toEqual(header)
  writeVirtioHeader(bytes, undefined)
  expect([...bytes]).toEqual(Array(10).fill(0))
})
