/** Applies changes to a device, and reports its state. */
import type { WireguardDevice } from '../netlink/wireguard.ts'
import { parsePrefix } from '../prefix.ts'
import { x25519Length } from '../x509/x25519.ts'
import type { Device } from './device.ts'
import { keyBytes, keyText } from './keys.ts'
import type { Peer } from './peer.ts'
import { formatEndpoint, parseEndpoint } from './socket-address.ts'
import { type DeviceChange, formatPrefix, type PeerChange } from './uapi.ts'

/** The bytes of a key, zeros for none. */
const bytesOf = (key: string): Uint8Array => (key === '' ? new Uint8Array(x25519Length) : new Uint8Array(keyBytes(key)))

/** Applies the keys and peers of a change. Port and mark belong to the sockets. */
export function configure(device: Device, { privateKey, replacePeers, peers }: DeviceChange): void {
  if (privateKey !== undefined) device.setPrivateKey(bytesOf(privateKey))
  if (replacePeers) for (const peer of [...device.peers.values()]) device.removePeer(peer.publicKey)
  for (const change of peers) configurePeer(device, change)
}

function configurePeer(device: Device, change: PeerChange): void {
  const key = bytesOf(change.publicKey)
  if (change.remove) {
    device.removePeer(key)
    return
  }
  if (change.updateOnly && !device.peers.has(change.publicKey)) return
  const peer = device.addPeer(key)
  if (!peer) return
  if (change.presharedKey !== undefined) peer.presharedKey = bytesOf(change.presharedKey)
  const expected = change.ifHandshake ?? peer.lastHandshake / 1000
  const endpoint = change.endpoint ? parseEndpoint(change.endpoint) : undefined
  if (endpoint && Math.round(expected * 1000) === peer.lastHandshake) device.movePeer(peer, endpoint)
  if (change.replaceIPs || change.addedIPs.length > 0) allow(device, peer, change)
  if (change.keepalive !== undefined) peer.setKeepalive(change.keepalive * 1000)
  if (peer.staged.length > 0) device.flush(peer)
}

/** Gives prefixes to a peer; who had one loses it. */
function allow(device: Device, peer: Peer, { replaceIPs, addedIPs }: PeerChange): void {
  const added = addedIPs.map(parsePrefix).map(({ bytes, bits }) => ({ address: masked(bytes, bits), bits }))
  const texts = new Set(added.map(formatPrefix))
  for (const other of device.peers.values()) other.allowedIps = other.allowedIps.filter((prefix) => !texts.has(formatPrefix(prefix)))
  peer.allowedIps = [...(replaceIPs ? [] : peer.allowedIps), ...added]
  device.routesChanged()
}

function masked(bytes: Uint8Array, bits: number): Uint8Array {
  return bytes.map((byte, index) => byte & ~(0xff >> Math.min(8, Math.max(0, bits - index * 8))))
}

/** The state of a device; with the key that was set, and with port and mark of its sockets. */
export function report(
  device: Device,
  { privateKey, listenPort, firewallMark }: { privateKey: string; listenPort: number; firewallMark: number },
): Omit<WireguardDevice, 'index'> {
  return {
    privateKey,
    publicKey: privateKey && keyText(device.publicKey),
    listenPort,
    firewallMark,
    peers: [...device.peers.values()].map((peer) => ({
      publicKey: keyText(peer.publicKey),
      presharedKey: keyText(peer.presharedKey),
      endpoint: peer.endpoint ? formatEndpoint(peer.endpoint) : '',
      keepalive: peer.persistentKeepalive / 1000,
      allowedIPs: peer.allowedIps.map(formatPrefix),
      lastHandshake: peer.lastHandshake / 1000,
      receivedBytes: peer.receivedBytes,
      sentBytes: peer.sentBytes,
    })),
  }
}
