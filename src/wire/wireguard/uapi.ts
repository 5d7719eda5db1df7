/** The configuration protocol of WireGuard in user space (https://www.wireguard.com/xplatform/): lines of key=value, ended by an empty line. `if_handshake_time_msec` is ours. */
import { DecodeError } from '../decode-error.ts'
import { parseIpPort } from '../host-port.ts'
import { formatIp } from '../ip.ts'
import type { WireguardChange, WireguardDevice, WireguardPeer, WireguardPeerChange } from '../netlink/wireguard.ts'
import { tryPrefix } from '../prefix.ts'
import { x25519Length } from '../x509/x25519.ts'
import { keyText } from './keys.ts'

/** A change; without an index, which the socket implies. */
export type DeviceChange = Omit<WireguardChange, 'index' | 'peers'> & { replacePeers?: boolean; peers: PeerChange[] }

/** A change of a peer. `addedIPs` are added to the list, or replace it. */
export type PeerChange = Omit<WireguardPeerChange, 'allowedIPs'> & { updateOnly?: boolean; replaceIPs?: boolean; addedIPs: string[] }

const hex = (key: string): string => Buffer.from(key, 'base64').toString('hex')

/** A request that applies a change. */
export function writeSet({ privateKey, listenPort, firewallMark, peers }: Omit<WireguardChange, 'index'>): string {
  const lines = ['set=1']
  if (privateKey !== undefined) lines.push(`private_key=${hex(privateKey)}`)
  if (listenPort !== undefined) lines.push(`listen_port=${listenPort}`)
  if (firewallMark !== undefined) lines.push(`fwmark=${firewallMark}`)
  for (const { publicKey, remove, presharedKey, endpoint, ifHandshake, keepalive, allowedIPs } of peers ?? []) {
    lines.push(`public_key=${hex(publicKey)}`)
    if (remove) lines.push('remove=true')
    if (presharedKey !== undefined) lines.push(`preshared_key=${hex(presharedKey).padEnd(2 * x25519Length, '0')}`)
    if (endpoint) lines.push(`endpoint=${endpoint}`)
    if (ifHandshake !== undefined) lines.push(`if_handshake_time_msec=${Math.round(ifHandshake * 1000)}`)
    if (keepalive !== undefined) lines.push(`persistent_keepalive_interval=${keepalive}`)
    if (allowedIPs) lines.push('replace_allowed_ips=true', ...allowedIPs.map((prefix) => `allowed_ip=${prefix}`))
  }
  return `${lines.join('\n')}\n\n`
}

/** Reads the lines of a set request, without the first. Throws DecodeError, which names the line but no key. */
export function readSet(lines: readonly string[]): DeviceChange {
  const change: DeviceChange = { peers: [] }
  let peer: PeerChange | undefined
  for (const [index, line] of lines.entries()) {
    const split = line.indexOf('=')
    const key = line.slice(0, split)
    const value = line.slice(split + 1)
    const fault = (reason: string) => new DecodeError('wireguard configuration', index, `${key}: ${reason}`)
    if (key === 'public_key') {
      peer = { publicKey: Buffer.from(keyOf(value, fault)).toString('base64'), addedIPs: [] }
      change.peers.push(peer)
    } else if (peer) setOfPeer(peer, key, value, fault)
    else setOfDevice(change, key, value, fault)
  }
  return change
}

type Fault = (reason: string) => DecodeError

function setOfDevice(change: DeviceChange, key: string, value: string, fault: Fault): void {
  if (key === 'private_key') change.privateKey = keyText(keyOf(value, fault))
  else if (key === 'listen_port') change.listenPort = numberOf(value, 0xffff, fault)
  else if (key === 'fwmark') change.firewallMark = numberOf(value, 0xffffffff, fault)
  else if (key === 'replace_peers') change.replacePeers = trueOf(value, fault)
  else throw fault('unknown')
}

function setOfPeer(peer: PeerChange, key: string, value: string, fault: Fault): void {
  if (key === 'remove') peer.remove = trueOf(value, fault)
  else if (key === 'update_only') peer.updateOnly = trueOf(value, fault)
  else if (key === 'preshared_key') peer.presharedKey = keyText(keyOf(value, fault))
  else if (key === 'endpoint') {
    if (!parseIpPort(value)) throw fault('expected an IP address and a port')
    peer.endpoint = value
  } else if (key === 'persistent_keepalive_interval') peer.keepalive = numberOf(value, 0xffff, fault)
  else if (key === 'if_handshake_time_msec') peer.ifHandshake = numberOf(value, Number.MAX_SAFE_INTEGER, fault) / 1000
  else if (key === 'replace_allowed_ips') {
    peer.replaceIPs = trueOf(value, fault)
    peer.addedIPs = []
  } else if (key === 'allowed_ip') {
    if (!tryPrefix(value)) throw fault('expected a network')
    peer.addedIPs.push(value)
  } else if (key !== 'protocol_version' || value !== '1') throw fault('unknown')
}

function keyOf(value: string, fault: Fault): Uint8Array {
  if (!/^[0-9a-f]{64}$/i.test(value)) throw fault('expected 64 hexadecimal digits')
  return Buffer.from(value, 'hex')
}

function numberOf(value: string, max: number, fault: Fault): number {
  const number = /^(0x[0-9a-f]{1,8}|\d{1,16})$/i.test(value) ? Number(value) : Number.NaN
  if (!(number <= max)) throw fault(`expected a number of at most ${max}`)
  return number
}

function trueOf(value: string, fault: Fault): true {
  if (value !== 'true') throw fault('expected "true"')
  return true
}

/** The answer to a get request. */
export function writeGet(device: Omit<WireguardDevice, 'index' | 'publicKey'>): string {
  const lines: string[] = []
  if (device.privateKey) lines.push(`private_key=${hex(device.privateKey)}`)
  lines.push(`listen_port=${device.listenPort}`)
  if (device.firewallMark) lines.push(`fwmark=${device.firewallMark}`)
  for (const peer of device.peers) {
    lines.push(`public_key=${hex(peer.publicKey)}`, `preshared_key=${hex(peer.presharedKey).padEnd(2 * x25519Length, '0')}`)
    lines.push('protocol_version=1')
    if (peer.endpoint) lines.push(`endpoint=${peer.endpoint}`)
    const seconds = Math.floor(peer.lastHandshake)
    lines.push(`last_handshake_time_sec=${seconds}`)
    lines.push(`last_handshake_time_nsec=${Math.min(999, Math.round((peer.lastHandshake - seconds) * 1e3)) * 1e6}`)
    lines.push(`tx_bytes=${peer.sentBytes}`, `rx_bytes=${peer.receivedBytes}`)
    lines.push(`persistent_keepalive_interval=${peer.keepalive}`, ...peer.allowedIPs.map((prefix) => `allowed_ip=${prefix}`))
  }
  return `${lines.join('\n')}\nerrno=0\n\n`
}

/** Reads the answer to a get request. Unknown keys are ignored, as the protocol demands. Throws DecodeError for a key that is none. */
export function readGet(text: string, publicKeyOf: (privateKey: string) => string): Omit<WireguardDevice, 'index'> {
  const device: Omit<WireguardDevice, 'index'> = { privateKey: '', publicKey: '', listenPort: 0, firewallMark: 0, peers: [] }
  let peer: WireguardPeer | undefined
  for (const [index, line] of text.split('\n').entries()) {
    const split = line.indexOf('=')
    const key = line.slice(0, split)
    const value = line.slice(split + 1)
    const fault = (reason: string) => new DecodeError('wireguard state', index, `${key}: ${reason}`)
    if (key === 'private_key') device.privateKey = keyText(keyOf(value, fault))
    else if (key === 'listen_port') device.listenPort = Number(value)
    else if (key === 'fwmark') device.firewallMark = Number(value)
    else if (key === 'public_key') {
      peer = {
        publicKey: Buffer.from(keyOf(value, fault)).toString('base64'),
        presharedKey: '',
        endpoint: '',
        keepalive: 0,
        allowedIPs: [],
        lastHandshake: 0,
        receivedBytes: 0,
        sentBytes: 0,
      }
      device.peers.push(peer)
    } else if (peer) readPeer(peer, key, value, fault)
  }
  if (device.privateKey) device.publicKey = publicKeyOf(device.privateKey)
  return device
}

function readPeer(peer: WireguardPeer, key: string, value: string, fault: Fault): void {
  if (key === 'preshared_key') peer.presharedKey = keyText(keyOf(value, fault))
  else if (key === 'endpoint') peer.endpoint = value
  else if (key === 'last_handshake_time_sec') peer.lastHandshake += Number(value)
  else if (key === 'last_handshake_time_nsec') peer.lastHandshake += Number(value) / 1e9
  else if (key === 'tx_bytes') peer.sentBytes = Number(value)
  else if (key === 'rx_bytes') peer.receivedBytes = Number(value)
  else if (key === 'persistent_keepalive_interval') peer.keepalive = Number(value)
  else if (key === 'allowed_ip') peer.allowedIPs.push(value)
}

/** A prefix as text. */
export const formatPrefix = ({ address, bits }: { address: Uint8Array; bits: number }): string => `${formatIp(address)}/${bits}`
