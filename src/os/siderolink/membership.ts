/** The place of a machine in its management server's network: admitted once, and again when no endpoint of the server answers. */
import { within } from '../../timing/within.ts'
import { formatHostPort, splitHostPort } from '../../wire/host-port.ts'
import { lookInterval, silence } from './link.ts'
import type { Admission } from './provision.ts'

/** Milliseconds for the address of a name. */
const lookupTimeout = 10_000

/** A place, and the endpoint in use. */
export interface Join {
  readonly admission: Admission
  /** As address:port; that of a tunnel is given by the tunnel. */
  readonly endpoint: string
}

/** What a look at the peer sees. */
export interface Look {
  /** Milliseconds by the monotonic clock. */
  readonly time: number
  /** Seconds since 1970. */
  readonly wall: number
  /** Seconds since 1970 of the last handshake, 0 for never, undefined without a link. */
  readonly heard: number | undefined
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
  async keep(of: string, { time, wall, heard }: Look, ways: Ways): Promise<Join> {
    if (this.#of !== of) this.leave()
    if (this.#join && time - this.#since < lookInterval) return this.#join
    if (this.#join && heard !== undefined && heard > 0 && wall - heard < silence) {
      this.#since = time
      return this.#join
    }
    const next = this.#join && !this.#join.admission.tunnelAddress ? this.#index + 1 : Number.POSITIVE_INFINITY
    const again = this.#join !== undefined && next < this.#join.admission.endpoints.length
    const admission = again && this.#join ? this.#join.admission : await ways.admit()
    this.#index = again ? next : 0
    const endpoint = admission.tunnelAddress ? await ways.tunnelEndpoint() : await resolved(admission.endpoints[this.#index] ?? '', ways)
    this.#join = { admission, endpoint }
    this.#of = of
    this.#since = time
    return this.#join
  }
}

async function resolved(endpoint: string, { lookup = (name) => Bun.dns.lookup(name) }: Ways): Promise<string> {
  const { host, port } = splitHostPort(endpoint, 0)
  const late = () => new Error(`no address of the management server "${host}" within ${lookupTimeout / 1000} s`)
  const [found] = await within(lookup(host), lookupTimeout, late)
  if (!found) throw new Error(`no address found for the management server "${host}"`)
  return formatHostPort(found.address, port)
}
