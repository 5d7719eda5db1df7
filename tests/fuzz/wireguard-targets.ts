/** Parsers of WireGuard: datagrams from anyone, and its configuration. */
import { readAdmission } from '../../src/os/siderolink/provision.ts'
import { decode, encode } from '../../src/rpc/codec.ts'
import { methodShape } from '../../src/rpc/schema.ts'
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
