/** Computes the smallest change that brings a WireGuard link to its spec. */
import type { SpecOf } from '../../../cosi/resource.ts'
import type { WireguardChange, WireguardDevice } from '../../../linux/net/wireguard.ts'
import { milliseconds } from '../../../wire/duration.ts'
import type { LinkSpec } from '../resources/link.ts'

type Settings = NonNullable<SpecOf<typeof LinkSpec>['wireguard']>

/** Seconds after a handshake during which a peer's endpoint is not changed. */
export const justHeard = 15
/** Seconds after a handshake at which its session expires. */
const sessionEnd = 180

/**
 * Returns the change, or undefined if there is none. Peers without a spec are removed. `configured` holds the endpoints set
 * earlier, by peer: a peer roams, so its endpoint is set once, and again only when the spec names another. A peer without a
 * session is recreated when its endpoint changes, so that the kernel starts a handshake at once instead of waiting for its
 * retry timer. For a peer with a session, keepalives are disabled and enabled, which makes the kernel send a packet at once.
 */
export function wireguardChange(
  desired: Settings,
  device: WireguardDevice,
  { configured = new Map(), now = Date.now() / 1000 }: { configured?: ReadonlyMap<string, string> | undefined; now?: number } = {},
): WireguardChange | undefined {
  const desiredPeers = new Map(desired.peers.map((peer) => [peer.publicKey, peer]))
  const present = new Map(device.peers.map((peer) => [peer.publicKey, peer]))
  const peers: NonNullable<WireguardChange['peers']>[number][] = device.peers
    .filter(({ publicKey }) => !desiredPeers.has(publicKey))
    .map(({ publicKey }) => ({ publicKey, remove: true }))
  for (const { publicKey, presharedKey, endpoint, persistentKeepaliveInterval, allowedIPs } of desiredPeers.values()) {
    const before = present.get(publicKey)
    const keepalive = Math.round(milliseconds(persistentKeepaliveInterval || '0s') / 1000)
    const another = (configured.get(publicKey) ?? endpoint) !== endpoint || before?.lastHandshake === 0
    // A peer heard of recently is at its present endpoint: the spec is outdated, or the change has to wait.
    const heard = before !== undefined && before.lastHandshake > 0 && now - before.lastHandshake < justHeard
    const move = endpoint && (!before || before.endpoint === '' || (before.endpoint !== endpoint && another && !heard))
    const sameIPs = before && Bun.deepEquals([...before.allowedIPs].sort(), [...allowedIPs].sort())
    if (before && sameIPs && !move && before.keepalive === keepalive && before.presharedKey === presharedKey) continue
    if (before && before.endpoint !== '' && move)
      peers.push(now - before.lastHandshake > sessionEnd ? { publicKey, remove: true } : { publicKey, keepalive: 0 })
    peers.push({ publicKey, presharedKey, keepalive, allowedIPs, ...(move && { endpoint }) })
  }
  const change = {
    ...(desired.privateKey && clamped(desired.privateKey) !== clamped(device.privateKey) && { privateKey: desired.privateKey }),
    ...(desired.listenPort && desired.listenPort !== device.listenPort && { listenPort: desired.listenPort }),
    ...(desired.firewallMark !== device.firewallMark && { firewallMark: desired.firewallMark }),
    ...(peers.length > 0 && { peers }),
  }
  return Object.keys(change).length > 0 ? { index: device.index, ...change } : undefined
}

/** The kernel stores private keys clamped as Curve25519 requires (RFC 7748 5). */
function clamped(key: string): string {
  const bytes = Buffer.from(key, 'base64')
  if (bytes.length !== 32) return key
  bytes.writeUInt8(bytes.readUInt8(0) & 248, 0)
  bytes.writeUInt8((bytes.readUInt8(31) & 127) | 64, 31)
  return bytes.toString('base64')
}

/** A WireGuard link as shown in its status: without private and preshared keys. */
export function shownWireguard({ publicKey, listenPort, firewallMark, peers }: WireguardDevice): Settings {
  return {
    publicKey,
    listenPort,
    firewallMark,
    peers: peers.map(({ publicKey: key, endpoint, keepalive, allowedIPs }) => ({
      publicKey: key,
      presharedKey: '',
      endpoint,
      persistentKeepaliveInterval: `${keepalive}s`,
      allowedIPs,
    })),
  }
}
