/**
 * Selects the endpoint of each peer and tracks its state. WireGuard reports handshakes and byte counts, and follows a roaming
 * peer by itself, so an endpoint is changed only while the peer is silent. For a peer never heard of, all endpoints are tried
 * in quick rotation; for one that fell silent, slowly, since its last endpoint is the most likely.
 */
import type { WireguardPeer } from '../../linux/net/wireguard.ts'

/** Timeouts in milliseconds. */
export const timeouts = {
  /** Time per endpoint, for a peer that was never heard of or has moved. */
  first: 1_500,
  /** Duration of quick rotation after a peer or a new endpoint was discovered. */
  eager: 120_000,
  /** Time per endpoint after a peer was lost. */
  lost: 15_000,
  /** A peer silent for this long is lost: several keepalives are missing. */
  silent: 90_000,
  /** The same if a new endpoint was discovered meanwhile: the peer has moved, and one keepalive is missing. */
  moved: 35_000,
  /** Validity of a handshake: renewed after 120 seconds; a session ends after 180. */
  handshake: 275_000,
} as const

/** The state of a peer. */
export interface PeerState {
  readonly state: 'unknown' | 'up' | 'down'
  /** The endpoint in use or being tried. */
  readonly endpoint: string
  readonly receiveBytes: number
  readonly transmitBytes: number
  /** Milliseconds since 1970; 0 before the first handshake. */
  readonly lastHandshake: number
  /** The endpoint tried last, and since when. */
  readonly lastUsedEndpoint: string
  readonly lastEndpointChange: number
}

interface Kept {
  endpoints: readonly string[]
  /** When the newest endpoint was discovered. */
  since: number
  tried: string
  triedSince: number
  /** `triedSince` on the wall clock, for display. */
  triedAt: number
  looked: number
  /** The last handshake: the kernel's timestamp (wall clock), and its time on the monotonic clock. */
  handshake: number
  shookHands: number
  received: number
  heard: number
}

/** Tracks the peers by public key. */
export class PeerTracker {
  readonly #peers = new Map<string, Kept>()

  /** Forgets all other peers. */
  retain(keys: ReadonlySet<string>): void {
    for (const key of this.#peers.keys()) if (!keys.has(key)) this.#peers.delete(key)
  }

  /** Updates a peer from the kernel's data (undefined if the kernel does not have it yet). Returns its state and, in `endpoint`, the endpoint to configure. */
  update(key: string, endpoints: readonly string[], peer: WireguardPeer | undefined, now: number, wall = now): PeerState {
    const kept = this.#know(key, endpoints, now, wall)
    const handshake = (peer?.lastHandshake ?? 0) * 1000
    if (peer && peer.receivedBytes !== kept.received) {
      kept.received = peer.receivedBytes
      // Bytes received before a handshake belong to an earlier session, or to no one.
      if (peer.receivedBytes > 0 && handshake > 0) kept.heard = now
    }
    if (handshake > 0 && handshake !== kept.handshake) {
      // At most the time since the previous update, even if the wall clock was changed meanwhile.
      const age = Math.min(Math.max(0, wall - handshake), now - kept.looked)
      kept.handshake = handshake
      kept.shookHands = now - age
      kept.heard = Math.max(kept.heard, now)
    }
    kept.looked = now
    if (now <= heardUntil(kept) && peer?.endpoint) {
      // The peer is at the source address of its packets.
      if (kept.tried !== peer.endpoint) this.#try(kept, peer.endpoint, now, wall)
    } else if (this.#due(kept, now)) this.#next(kept, now, wall)
    return {
      state: stateOf(kept, now),
      endpoint: kept.tried,
      receiveBytes: peer?.receivedBytes ?? 0,
      transmitBytes: peer?.sentBytes ?? 0,
      lastHandshake: kept.handshake,
      lastUsedEndpoint: kept.tried,
      lastEndpointChange: kept.triedAt,
    }
  }

  /** Milliseconds until the next endpoint change if all peers stay silent; undefined if there is none. */
  next(now: number): number | undefined {
    const waits = [...this.#peers.values()]
      .filter(({ endpoints }) => endpoints.length > 0)
      .map((kept) => Math.max(heardUntil(kept) + 1, kept.triedSince + timeout(kept, now)) - now)
    return waits.length > 0 ? Math.max(0, Math.min(...waits)) : undefined
  }

  #know(key: string, endpoints: readonly string[], now: number, wall: number): Kept {
    const kept = this.#peers.get(key)
    if (!kept) {
      const made: Kept = {
        endpoints,
        since: now,
        tried: '',
        triedSince: now,
        triedAt: wall,
        looked: Number.NEGATIVE_INFINITY,
        handshake: 0,
        shookHands: Number.NEGATIVE_INFINITY,
        received: 0,
        heard: Number.NEGATIVE_INFINITY,
      }
      this.#peers.set(key, made)
      return made
    }
    if (endpoints.some((endpoint) => !kept.endpoints.includes(endpoint))) kept.since = now
    kept.endpoints = endpoints
    return kept
  }

  #due(kept: Kept, now: number): boolean {
    return kept.tried === '' || now - kept.triedSince >= timeout(kept, now)
  }

  #next(kept: Kept, now: number, wall: number): void {
    const endpoint = kept.endpoints[(kept.endpoints.indexOf(kept.tried) + 1) % kept.endpoints.length]
    // Without endpoints the peer must connect to us.
    if (endpoint !== undefined) this.#try(kept, endpoint, now, wall)
  }

  #try(kept: Kept, endpoint: string, now: number, wall: number): void {
    kept.tried = endpoint
    kept.triedSince = now
    kept.triedAt = wall
  }
}

/** True if an endpoint was discovered after the peer was last heard of, or it never was. */
const mayHaveMoved = ({ heard, since }: Kept): boolean => since > heard

const heardUntil = (kept: Kept): number => kept.heard + (mayHaveMoved(kept) ? timeouts.moved : timeouts.silent)

const timeout = (kept: Kept, now: number): number =>
  mayHaveMoved(kept) && now - kept.since < timeouts.eager ? timeouts.first : timeouts.lost

function stateOf({ handshake, shookHands, since }: Kept, now: number): PeerState['state'] {
  if (handshake > 0) return now - shookHands < timeouts.handshake ? 'up' : 'down'
  return now - since < timeouts.lost ? 'unknown' : 'down'
}
