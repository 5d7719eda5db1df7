/**
 * What one address may ask of the service, so that nobody takes it from the others. Many nodes may share an address behind
 * a translation, so there is room for a whole cluster's; of IPv6 a network of 64 bits counts as one.
 */
import { RpcError } from '../../rpc/status.ts'
import { TokenBucket } from '../../timing/token-bucket.ts'

/** Calls a second in the long run and at once, watches under way, and addresses that are remembered. */
export const addressLimits = { rate: 100, burst: 4_000, watches: 2_048, clusters: 64, addresses: 65_536 } as const

/** As whom an address is counted. */
export const countedAs = (address: Uint8Array): string =>
  Buffer.from(address.length === 16 ? address.subarray(0, 8) : address).toString('hex')

interface Counted {
  readonly calls: TokenBucket
  /** When the last call came. */
  time: number
  watches: number
  readonly clusters: Set<string>
}

/** Counts by address. */
export class AddressLimits {
  readonly #counted = new Map<string, Counted>()

  constructor(private readonly now: () => number = () => performance.now()) {}

  /** Notes a call about a cluster; throws ResourceExhausted when it is one too many. */
  take(address: Uint8Array, clusterId: string): void {
    const counted = this.#of(address)
    const now = this.now()
    counted.time = now
    if (!counted.calls.take(now))
      throw new RpcError('ResourceExhausted', `too many calls from your address: no more than ${addressLimits.rate} a second`)
    if (!counted.clusters.has(clusterId) && counted.clusters.size >= addressLimits.clusters)
      throw new RpcError('ResourceExhausted', `too many clusters from your address: no more than ${addressLimits.clusters}`)
    counted.clusters.add(clusterId)
  }

  /** Notes a watch; the result ends it. Throws ResourceExhausted when it is one too many. */
  watch(address: Uint8Array): () => void {
    const counted = this.#of(address)
    if (counted.watches >= addressLimits.watches)
      throw new RpcError('ResourceExhausted', `too many watches from your address: no more than ${addressLimits.watches}`)
    counted.watches++
    return () => {
      counted.watches--
    }
  }

  /** Forgets addresses that have been still for long enough; called now and then. */
  sweep(): void {
    const still = this.now() - (addressLimits.burst / addressLimits.rate) * 1000
    for (const [key, { watches, time }] of this.#counted) if (watches === 0 && time <= still) this.#counted.delete(key)
  }

  /** What is counted of an address, which thereby becomes the one that was last heard of. */
  #of(address: Uint8Array): Counted {
    const key = countedAs(address)
    const known = this.#counted.get(key)
    this.#counted.delete(key)
    if (this.#counted.size >= addressLimits.addresses) this.#forgetOne()
    const now = this.now()
    const counted: Counted = known ?? { calls: new TokenBucket(addressLimits, now), time: now, watches: 0, clusters: new Set() }
    this.#counted.set(key, counted)
    return counted
  }

  /** The address that has been silent for longest gives way to a newcomer. */
  #forgetOne(): void {
    for (const [key, { watches }] of this.#counted)
      if (watches === 0) {
        this.#counted.delete(key)
        return
      }
    throw new RpcError('ResourceExhausted', 'too many addresses ask at once: try again later')
  }
}
