/** Parsers of WireGuard: datagrams from anyone, and its configuration. */
import { readAdmission } from '../../src/os/siderolink/provision.ts'
import { decode, encode } from '../../src/rpc/codec.ts'
import { methodShape } from '../../src/rpc/schema.ts'
import { WordSums } from '../../src/wire/packet/checksum.ts'
import { PacketMerger } from '../../src/wire/packet/merge.ts'
import { splitPacket } from '../../src/wire/packet/split.ts'
import { readVirtioHeader, segmentation, virtioHeaderLength, writeVirtioHeader } from '../../src/wire/packet/virtio-header.ts'
import { configure } from '../../src/wire/wireguard/configure.ts'
import { Device, headroom, tailroom } from '../../src/wire/wireguard/device.ts'
import { newPrivateKey, publicKeyOf } from '../../src/wire/wireguard/keys.ts'
import { readCounter, readU32 } from '../../src/wire/wireguard/message.ts'
import { parseEndpoint } from '../../src/wire/wireguard/socket-address.ts'
import { readGet, readSet, writeGet, writeSet } from '../../src/wire/wireguard/uapi.ts'
import type { Target } from './target.ts'

const cipher = { seal() {}, open: () => false, close() {} }
const sent: Uint8Array[] = []
const tools = { now: () => 0, wallClock: () => 1, randomIndex: () => sent.length + 1, cipher: () => cipher }
const newDevice = () => {
  const device = new Device({ send: (buffer, at, length) => sent.push(buffer.slice(at, at + length)), deliver() {} }, tools)
  const privateKey = newPrivateKey()
  configure(device, { privateKey, peers: [] })
  return { device, publicKey: publicKeyOf(privateKey) }
}
const [one, other] = [newDevice(), newDevice()]
const endpoint = '192.0.2.1:51820'
configure(one.device, { peers: [{ publicKey: other.publicKey, endpoint, keepalive: 25, addedIPs: ['10.0.0.0/8'] }] })
configure(other.device, { peers: [{ publicKey: one.publicKey, addedIPs: [] }] })
const [initiation = new Uint8Array()] = sent.splice(0)
const from = parseEndpoint(endpoint)

const peer = { publicKey: other.publicKey, presharedKey: newPrivateKey(), endpoint, keepalive: 25, allowedIPs: ['10.0.0.0/8'] }
const state = { ...peer, lastHandshake: 1, receivedBytes: 1, sentBytes: 2 }
const change = { privateKey: newPrivateKey(), listenPort: 1, firewallMark: 2 }
const provision = methodShape('sidero.link.ProvisionService/Provision')
const admission = {
  serverEndpoint: [endpoint, 'a:1'],
  serverPublicKey: other.publicKey,
  nodeAddressPrefix: 'fdae::3:0:0:0:2/64',
  serverAddress: 'fdae::3:0:0:0:1',
  grpcPeerAddrPort: '[fdae::4:0:0:0:2]:50888',
}
/** An IPv4 packet with 4 bytes over TCP, and its repetition with the next sequence number; checksums are right. */
const segment = (sequence: number, checksum: number) =>
  Buffer.from(
    [0x45, 0, 0, 44, 0, 0, 0x40, 0, 64, 6, 0x26, 0xca, 10, 0, 0, 1, 10, 0, 0, 2].concat([
      0,
      1,
      0,
      2,
      0,
      0,
      0,
      sequence,
      0,
      0,
      0,
      0,
      0x50,
      0x10,
      0,
      0,
      checksum >> 8,
      checksum & 255,
      0,
      0,
      1,
      2,
      3,
      4,
    ]),
  )
const large = { partialChecksum: true, headerLength: 40, segment: 1, checksumStart: 20, checksumOffset: 16 }
function fromLink(packet: Uint8Array, kind: number): Uint8Array {
  const header = new Uint8Array(virtioHeaderLength)
  writeVirtioHeader(header, { ...large, segmentation: kind })
  return Buffer.concat([header, packet])
}
const sums = new WordSums()
const ascii = (input: Uint8Array) => Buffer.from(input).toString('latin1')

/** Parsers by name. */
export const wireguardTargets: Record<string, Target> = {
  'datagrams of WireGuard': {
    seeds: [initiation, Uint8Array.of(4, ...new Uint8Array(47)), Uint8Array.of(3, ...new Uint8Array(63))],
    answers: [],
    run(input) {
      readU32(input, 0)
      readCounter(input, 0)
      if (from) other.device.datagram(Buffer.from(input), from)
      sent.length = 0
    },
  },
  'packets for WireGuard': {
    seeds: [Buffer.concat([Uint8Array.of(0x45, 0, 0, 20), new Uint8Array(12), Uint8Array.of(10, 0, 0, 1)])],
    answers: [],
    run(input) {
      one.device.packet(Buffer.concat([new Uint8Array(headroom), input, new Uint8Array(tailroom)]), headroom, input.length)
      sent.length = 0
    },
  },
  'packets of peers that are merged': {
    seeds: [Buffer.concat([segment(0, 0x97c5), segment(4, 0x97c1)]), Buffer.concat([segment(0, 0), new Uint8Array(44)])],
    answers: [],
    run(input) {
      const merger = new PacketMerger()
      const size = Math.max(1, input.length >> 1)
      const buffer = Buffer.from(input)
      let [given, taken] = [0, 0]
      for (let at = 0; at < buffer.length; at += size, given++) merger.add(buffer, at, Math.min(size, buffer.length - at))
      merger.flush(({ pieces }) => {
        taken += pieces.length
      })
      if (given !== taken) throw new Error(`${taken} of ${given} packets`)
    },
  },
  'packets of links that are split': {
    seeds: Object.values(segmentation).map((kind) => fromLink(segment(0, 0), kind)),
    answers: [],
    run(input) {
      readVirtioHeader(input, 0)
      const buffer = new Uint8Array(input.length * 2 + 64)
      buffer.set(input)
      const take = (at: number, length: number) => {
        if (length < 0 || at + length > buffer.length) throw new Error(`${length} bytes at ${at}`)
      }
      splitPacket(buffer, 0, input.length, sums, { place: () => input.length, take })
    },
  },
  'changes of WireGuard': {
    seeds: [Buffer.from(writeSet({ ...change, peers: [peer] }).trimEnd())],
    answers: ['DecodeError'],
    run: (input) => void configure(newDevice().device, readSet(ascii(input).split('\n').slice(1))),
  },
  'answers of management servers': {
    seeds: [Buffer.from(encode(provision.reply, admission)), Buffer.from(encode(provision.reply, { ...admission, serverEndpoint: [] }))],
    answers: ['DecodeError', 'ProtoError'],
    run: (input) => void readAdmission(decode(provision.reply, Buffer.from(input)) as typeof admission),
  },
  'states of WireGuard': {
    seeds: [Buffer.from(writeGet({ ...change, peers: [state] }))],
    answers: ['DecodeError'],
    run: (input) => void readGet(ascii(input), publicKeyOf),
  },
}
