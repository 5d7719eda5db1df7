/** WireGuard links over generic netlink (linux/wireguard.h): keys, port, mark, peers. */
import { DecodeError } from '../decode-error.ts'
import { formatHostPort, parseIpPort } from '../host-port.ts'
import { formatIp } from '../ip.ts'
import { tryPrefix } from '../prefix.ts'
import { keyBytes, keyText } from '../wireguard/keys.ts'
import { AttributeReader, attribute, nested, u8, u16, u32 } from './attributes.ts'
import { readGeneric, writeGeneric } from './generic.ts'

/** The family's name, and its commands. */
export const wireguardFamily = 'wireguard'
const wireguardCommand = { get: 0, set: 1 } as const

/** A peer as reported by the kernel; keys are base64. */
export interface WireguardPeer {
  publicKey: string
  /** '' when there is none. */
  presharedKey: string
  /** `10.0.0.1:51820`, `[fd00::1]:51820`; '' while it is unknown. */
  endpoint: string
  /** Seconds; 0 disables it. */
  keepalive: number
  allowedIPs: string[]
  /** Seconds since 1970, 0 before the first. */
  lastHandshake: number
  receivedBytes: number
  sentBytes: number
}

/** A WireGuard link as reported by the kernel. */
export interface WireguardDevice {
  index: number
  privateKey: string
  publicKey: string
  listenPort: number
  firewallMark: number
  peers: WireguardPeer[]
}

/** A change of a peer; omitted fields stay as they are. */
export interface WireguardPeerChange {
  publicKey: string
  remove?: boolean
  presharedKey?: string
  endpoint?: string
  /** The endpoint is set only while the last handshake was at this time, in seconds since 1970; 0 for none. In user space only. */
  ifHandshake?: number
  keepalive?: number
  /** The complete list: it replaces the previous one. */
  allowedIPs?: readonly string[]
}

/** A change of a link; omitted fields, and peers that are not named, stay as they are. */
export interface WireguardChange {
  index: number
  privateKey?: string
  listenPort?: number
  firewallMark?: number
  peers?: readonly WireguardPeerChange[]
}

const WGDEVICE_A = { index: 1, privateKey: 3, publicKey: 4, listenPort: 6, mark: 7, peers: 8 } as const
const WGPEER_A = {
  publicKey: 1,
  presharedKey: 2,
  flags: 3,
  endpoint: 4,
  keepalive: 5,
  handshake: 6,
  received: 7,
  sent: 8,
  allowed: 9,
} as const
const WGALLOWEDIP_A = { family: 1, address: 2, mask: 3 } as const
const removeMe = 1
const replaceAllowed = 2
const maxPerMessage = 60_000

/** Encodes a query for a link's settings (a dump: many peers come in several messages). */
export const writeWireguardQuery = (index: number): Uint8Array => writeGeneric(wireguardCommand.get, 1, [u32(WGDEVICE_A.index, index)])

/** Decodes the messages of one link. */
export function readWireguard(bodies: readonly Uint8Array[]): WireguardDevice {
  const device: WireguardDevice = { index: 0, privateKey: '', publicKey: '', listenPort: 0, firewallMark: 0, peers: [] }
  for (const body of bodies) {
    const { attributes } = readGeneric(body, 'wireguard')
    device.index ||= attributes.u32(WGDEVICE_A.index) ?? 0
    device.privateKey ||= keyText(attributes.bytes(WGDEVICE_A.privateKey))
    device.publicKey ||= keyText(attributes.bytes(WGDEVICE_A.publicKey))
    device.listenPort ||= attributes.u16(WGDEVICE_A.listenPort) ?? 0
    device.firewallMark ||= attributes.u32(WGDEVICE_A.mark) ?? 0
    for (const { value, offset } of attributes.list(WGDEVICE_A.peers)) {
      const peer = readPeer(new AttributeReader(value, 'wireguard peer', offset))
      const last = device.peers.at(-1)
      if (last?.publicKey === peer.publicKey)
        last.allowedIPs.push(...peer.allowedIPs) // the remaining ones of a peer that was split between messages
      else device.peers.push(peer)
    }
  }
  return device
}

function readPeer(peer: AttributeReader): WireguardPeer {
  const number = (type: number) => {
    const bytes = peer.bytes(type)
    return bytes && bytes.length >= 8 ? Number(new DataView(bytes.buffer, bytes.byteOffset, 8).getBigUint64(0, true)) : 0
  }
  return {
    publicKey: keyText(peer.bytes(WGPEER_A.publicKey)),
    presharedKey: keyText(peer.bytes(WGPEER_A.presharedKey)),
    endpoint: readEndpoint(peer.bytes(WGPEER_A.endpoint)),
    keepalive: peer.u16(WGPEER_A.keepalive) ?? 0,
    allowedIPs: peer.list(WGPEER_A.allowed).map(({ value, offset }) => {
      const allowed = new AttributeReader(value, 'wireguard allowed IP', offset)
      const address = allowed.bytes(WGALLOWEDIP_A.address)
      if (!address) throw new DecodeError('wireguard allowed IP', offset, 'it has no address')
      return `${formatIp(address)}/${allowed.u8(WGALLOWEDIP_A.mask) ?? address.length * 8}`
    }),
    lastHandshake: number(WGPEER_A.handshake),
    receivedBytes: number(WGPEER_A.received),
    sentBytes: number(WGPEER_A.sent),
  }
}

// struct sockaddr_in, sockaddr_in6
function readEndpoint(bytes: Uint8Array | undefined): string {
  if (!bytes || bytes.length < 16) return ''
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const family = view.getUint16(0, true)
  const port = view.getUint16(2)
  if (family === 2) return formatHostPort(formatIp(bytes.subarray(4, 8)), port)
  return family === 10 && bytes.length >= 28 ? formatHostPort(formatIp(bytes.subarray(8, 24)), port) : ''
}

function endpointBytes(endpoint: string): Uint8Array {
  const { address, port = 0 } = parseIpPort(endpoint) ?? {}
  if (!address) throw new RangeError(`"${endpoint}" is no endpoint: give an address and a port, like "10.0.0.1:51820"`)
  const bytes = Buffer.alloc(address.length === 4 ? 16 : 28)
  bytes.writeUInt16LE(address.length === 4 ? 2 : 10, 0)
  bytes.writeUInt16BE(port, 2)
  bytes.set(address, address.length === 4 ? 4 : 8)
  return bytes
}

function writePeer({ publicKey, remove, presharedKey, endpoint, keepalive, allowedIPs }: WireguardPeerChange): Uint8Array {
  const flags = (remove ? removeMe : 0) | (allowedIPs ? replaceAllowed : 0)
  const parts = [attribute(WGPEER_A.publicKey, keyBytes(publicKey)), u32(WGPEER_A.flags, flags)]
  if (presharedKey !== undefined) parts.push(attribute(WGPEER_A.presharedKey, presharedKey ? keyBytes(presharedKey) : new Uint8Array(32)))
  if (endpoint) parts.push(attribute(WGPEER_A.endpoint, endpointBytes(endpoint)))
  if (keepalive !== undefined) parts.push(u16(WGPEER_A.keepalive, keepalive))
  if (allowedIPs) parts.push(nested(WGPEER_A.allowed, allowedIPs.map(writeAllowed)))
  return nested(0, parts)
}

function writeAllowed(text: string): Uint8Array {
  const prefix = tryPrefix(text)
  if (!prefix) throw new RangeError(`"${text}" is no network`)
  const family = prefix.bytes.length === 4 ? 2 : 10
  return nested(0, [u16(WGALLOWEDIP_A.family, family), attribute(WGALLOWEDIP_A.address, prefix.bytes), u8(WGALLOWEDIP_A.mask, prefix.bits)])
}

/** Encodes a change in as many messages as needed: an attribute holds 64 KiB, so many peers come in several. */
export function writeWireguard({ index, privateKey, listenPort, firewallMark, peers = [] }: WireguardChange): Uint8Array[] {
  const head = [u32(WGDEVICE_A.index, index)]
  if (privateKey !== undefined) head.push(attribute(WGDEVICE_A.privateKey, keyBytes(privateKey)))
  if (listenPort !== undefined) head.push(u16(WGDEVICE_A.listenPort, listenPort))
  if (firewallMark !== undefined) head.push(u32(WGDEVICE_A.mark, firewallMark))
  let last: Uint8Array[] = []
  const groups = [last]
  let size = 0
  for (const peer of peers.map(writePeer)) {
    if (size + peer.length > maxPerMessage) {
      last = []
      groups.push(last)
      size = 0
    }
    last.push(peer)
    size += peer.length
  }
  return groups.map((group, number) =>
    writeGeneric(wireguardCommand.set, 1, [
      ...(number === 0 ? head : [u32(WGDEVICE_A.index, index)]),
      ...(group.length > 0 ? [nested(WGDEVICE_A.peers, group)] : []),
    ]),
  )
}
