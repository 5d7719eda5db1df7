/**
 * Which endpoint of a peer is tried, and how it fares. WireGuard tells of handshakes and bytes; it follows a peer that
 * moves by itself, so an endpoint is changed only while nothing is heard. A peer that was never heard of is tried at
 * every endpoint in turn at once; one that fell silent slowly, for its last one is the likeliest.
 */
import type { WireguardPeer } from '../../linux/net/wireguard.ts'

/** Milliseconds. */
export const patience = {
  /** How long an endpoint is tried of a peer that was never heard of, or has moved. */
  first: 1_500,
  /** For so long after a peer or a new endpoint of it became known; then as for the lost. */
  eager: 120_000,
  /** How long an endpoint is tried after a peer was lost. */
  lost: 15_000,
  /** A peer of which nothing comes for so long is lost: several keepalives are missing. */
  silent: 90_000,
  /** The same when a new endpoint of it has become known meanwhile: it has moved, and one keepalive is missing. */
  moved: 35_000,
  /** A handshake holds for so long: made anew after 120 seconds, a session ends after 180. */
  handshake: 275_000,
} as const

/** How a peer fares. */
export interface PeerState {
  readonly state: 'unknown' | 'up' | 'down'
  /** Where its packets come from, or go to. */
  readonly endpoint: string
  readonly receiveBytes: number
  readonly transmitBytes: number
  /** Milliseconds since 1970; 0 before the first. */
  readonly lastHandshake: number
  /** What was tried last, and since when. */
  readonly lastUsedEndpoint: string
  readonly lastEndpointChange: number
}

interface Kept {
  endpoints: readonly string[]
  /** When one of them became known. */
  since: number
  tried: string
  triedSince: number
  /** The same by the wall clock, for people. */
  triedAt: number
  looked: number
  /** The kernel's time stamp of the last handshake, which is of the wall clock, and when that was by the monotonic one. */
  handshake: number
  shookHands: number
  received: number
  heard: number
}

/** What is remembered of the peers, by public key. */
export class PeerKeeper {
  readonly #peers = new Map<string, Kept>()

  /** Forgets all others. */
  keep(keys: ReadonlySet<string>): void {
    for (const key of this.#peers.keys()) if (!keys.has(key)) this.#peers.delete(key)
  }

  /** Looks at a peer, as the kernel tells of it if it has it yet: how it fares, and with `endpoint` where it should be tried from now on. */
  look(key: string, endpoints: readonly string[], told: WireguardPeer | undefined, now: number, wall = now): PeerState {
    const kept = this.#know(key, endpoints, now, wall)
    const handshake = (told?.lastHandshake ?? 0) * 1000
    if (told && told.receivedBytes !== kept.received) {
      kept.received = told.receivedBytes
      // Bytes of before a handshake are those of another time, or of nobody.
      if (told.receivedBytes > 0 && handshake > 0) kept.heard = now
    }
    if (handshake > 0 && handshake !== kept.handshake) {
      // Since the last look, whatever was done to the wall clock meanwhile.
      const age = Math.min(Math.max(0, wall - handshake), now - kept.looked)
      kept.handshake = handshake
      kept.shookHands = now - age
      kept.heard = Math.max(kept.heard, now)
    }
    kept.looked = now
    if (now <= heardUntil(kept) && told?.endpoint) {
      // It is where its packets come from, wherever that is.
      if (kept.tried !== told.endpoint) this.#try(kept, told.endpoint, now, wall)
    } else if (this.#due(kept, now)) this.#next(kept, now, wall)
    return {
      state: stateOf(kept, now),
      endpoint: kept.tried,
      receiveBytes: told?.receivedBytes ?? 0,
      transmitBytes: told?.sentBytes ?? 0,
      lastHandshake: kept.handshake,
      lastUsedEndpoint: kept.tried,
      lastEndpointChange: kept.triedAt,
    }
  }

  /** Milliseconds until something is to be done for a peer if nothing is heard of it; undefined when nothing ever is. */
  next(now: number): number | undefined {
    const waits = [...this.#peers.values()]
      .filter(({ endpoints }) => endpoints.length > 0)
      .map((kept) => Math.max(heardUntil(kept) + 1, kept.triedSince + pause(kept, now)) - now)
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
    return kept.tried === '' || now - kept.triedSince >= pause(kept, now)
  }

  #next(kept: Kept, now: number, wall: number): void {
    if (kept.endpoints.length === 0) return // it must come to us
    this.#try(kept, kept.endpoints[(kept.endpoints.indexOf(kept.tried) + 1) % kept.endpoints.length]!, now, wall)
  }

  #try(kept: Kept, endpoint: string, now: number, wall: number): void {
    kept.tried = endpoint
    kept.triedSince = now
    kept.triedAt = wall
  }
}

/** Whether an endpoint became known since it was last heard of, or it never was. */
const mayHaveMoved = ({ heard, since }: Kept): boolean => since > heard

const heardUntil = (kept: Kept): number => kept.heard + (mayHaveMoved(kept) ? patience.moved : patience.silent)

const pause = (kept: Kept, now: number): number =>
  mayHaveMoved(kept) && now - kept.since < patience.eager ? patience.first : patience.lost

function stateOf({ handshake, shookHands, since }: Kept, now: number): PeerState['state'] {
  if (handshake > 0) return now - shookHands < patience.handshake ? 'up' : 'down'
  return now - since < patience.lost ? 'unknown' : 'down'
}
