/** The place of a machine in its management server's network: admitted once, and again when no endpoint of the server answers. */
import { within } from '../../timing/within.ts'
import { formatHostPort, splitHostPort } from '../../wire/host-port.ts'
import { lookInterval } from './link.ts'
import type { Admission } from './provision.ts'

/** Milliseconds for the address of a name. */
const lookupTimeout = 10_000

/** A place, and the endpoint in use. */
export interface Join {
  readonly admission: Admission
  /** As address:port; that of a tunnel is given by the tunnel. */
  readonly endpoint: string
}

/** What a look at the link sees. */
export interface Look {
  /** Milliseconds by the monotonic clock. */
  readonly time: number
  /** The server was heard lately. */
  readonly heard: boolean
}

/** How a place is requested, and how an endpoint becomes an address. */
export interface Ways {
  admit(): Promise<Admission>
  /** The local endpoint of a tunnel. */
  tunnelEndpoint(): Promise<string>
  lookup?(host: string): Promise<readonly { address: string }[]>
}

/** The place, over rounds. */
export class Membership {
  #join: Join | undefined
  #of = ''
  #index = 0
  #since = 0

  /** The present place. */
  get join(): Join | undefined {
    return this.#join
  }

  /** Milliseconds until the next look. */
  next(time: number): number {
    return Math.max(1, this.#since + lookInterval - time)
  }

  /** Forgets the place. */
  leave(): void {
    this.#join = undefined
    this.#of = ''
  }

  /** The place for `of`, which names the server and the applicant. A silent endpoint gives way to the next; after the last one, the place is requested again. */
  async keep(of: string, { time, heard }: Look, ways: Ways): Promise<Join> {
    if (this.#of !== of) this.leave()
    const before = this.#join
    if (before && time - this.#since < lookInterval) return before
    if (before && heard) {
      this.#since = time
      return before
    }
    const known = before?.admission
    const hasNext = known && !known.tunnelAddress && this.#index + 1 < known.endpoints.length
    const join = hasNext ? await this.#reach(known, this.#index + 1, ways) : await this.#reach(await ways.admit(), 0, ways)
    this.#join = join
    this.#of = of
    this.#since = time
    return join
  }

  /** Uses the first endpoint from the index on that has an address. The index moves also when none has one, so that the next round requests the place again. */
  async #reach(admission: Admission, from: number, ways: Ways): Promise<Join> {
    if (admission.tunnelAddress) return { admission, endpoint: await ways.tunnelEndpoint() }
    let failure: unknown
    for (const [index, endpoint] of admission.endpoints.entries()) {
      if (index < from) continue
      this.#index = index
      try {
        return { admission, endpoint: await resolved(endpoint, ways) }
      } catch (error) {
        failure = error
      }
    }
    throw failure
  }
}

async function resolved(endpoint: string, { lookup = (name) => Bun.dns.lookup(name) }: Ways): Promise<string> {
  const { host, port } = splitHostPort(endpoint, 0)
  const late = () => new Error(`no address of the management server "${host}" within ${lookupTimeout / 1000} s`)
  const [found] = await within(lookup(host), lookupTimeout, late)
  if (!found) throw new Error(`no address found for the management server "${host}"`)
  return formatHostPort(found.address, port)
}
