/** The least change that makes a WireGuard link what it should be. */
import type { SpecOf } from '../../../cosi/resource.ts'
import { milliseconds } from '../../../document/quantity.ts'
import type { WireguardChange, WireguardDevice } from '../../../linux/net/wireguard.ts'
import type { LinkSpec } from '../resources/link.ts'

type Settings = NonNullable<SpecOf<typeof LinkSpec>['wireguard']>

/** Seconds after a handshake in which a peer is left where it is. */
export const justHeard = 15
/** Seconds after which no session of a handshake is of use any more. */
const sessionEnd = 180

/**
 * What has to change; undefined when nothing has to. Peers that are not wished go. `told` holds the endpoints that were told
 * before, by peer: one roams, so it is told once, and again when the wish names another. A peer without a session is made
 * anew where it moves, so that the kernel tries at once; it would wait for seconds since its last attempt. To one with a
 * session a packet is sent at once when keepalives begin, so they end and begin.
 */
export function wireguardChange(
  wish: Settings,
  device: WireguardDevice,
  { told = new Map(), now = Date.now() / 1000 }: { told?: ReadonlyMap<string, string>; now?: number } = {},
): WireguardChange | undefined {
  const wanted = new Map(wish.peers.map((peer) => [peer.publicKey, peer]))
  const present = new Map(device.peers.map((peer) => [peer.publicKey, peer]))
  const peers: NonNullable<WireguardChange['peers']>[number][] = device.peers
    .filter(({ publicKey }) => !wanted.has(publicKey))
    .map(({ publicKey }) => ({ publicKey, remove: true }))
  for (const { publicKey, presharedKey, endpoint, persistentKeepaliveInterval, allowedIPs } of wanted.values()) {
    const before = present.get(publicKey)
    const keepalive = Math.round(milliseconds(persistentKeepaliveInterval || '0s') / 1000)
    const another = (told.get(publicKey) ?? endpoint) !== endpoint || before?.lastHandshake === 0
    // Who was heard of this moment is where it is: the wish is from before, or has to wait.
    const heard = before !== undefined && before.lastHandshake > 0 && now - before.lastHandshake < justHeard
    const move = endpoint && (!before || before.endpoint === '' || (before.endpoint !== endpoint && another && !heard))
    const sameIPs = before && Bun.deepEquals([...before.allowedIPs].sort(), [...allowedIPs].sort())
    if (before && sameIPs && !move && before.keepalive === keepalive && before.presharedKey === presharedKey) continue
    if (before && before.endpoint !== '' && move)
      peers.push(now - before.lastHandshake > sessionEnd ? { publicKey, remove: true } : { publicKey, keepalive: 0 })
    peers.push({ publicKey, presharedKey, keepalive, allowedIPs, ...(move ? { endpoint } : {}) })
  }
  const change = {
    ...(wish.privateKey && clamped(wish.privateKey) !== clamped(device.privateKey) ? { privateKey: wish.privateKey } : {}),
    ...(wish.listenPort && wish.listenPort !== device.listenPort ? { listenPort: wish.listenPort } : {}),
    ...(wish.firewallMark !== device.firewallMark ? { firewallMark: wish.firewallMark } : {}),
    ...(peers.length > 0 ? { peers } : {}),
  }
  return Object.keys(change).length > 0 ? { index: device.index, ...change } : undefined
}

/** The kernel keeps private keys with the bits set and cleared that Curve25519 asks for (RFC 7748 5). */
function clamped(key: string): string {
  const bytes = Buffer.from(key, 'base64')
  if (bytes.length !== 32) return key
  bytes[0]! &= 248
  bytes[31] = (bytes[31]! & 127) | 64
  return bytes.toString('base64')
}

/** A WireGuard link as its status shows it: no private or shared key. */
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
