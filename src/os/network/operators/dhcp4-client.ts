/**
 * A client of DHCP for one link (RFC 2131 4.4), without sockets and timers of its own:
 *
 *   discover → offer → request → ack → probe → bound → (T1) renew → (T2) rebind → (end) discover
 *
 * A refusal (NAK) or an address that is taken (decline) leads back to the beginning; a lease from before is asked for
 * again first. The longer nobody answers, the longer the pauses, up to a minute.
 */
import type { Logger } from '../../../cosi/log.ts'
import {
  type Dhcp4Message,
  Dhcp4Options,
  type Dhcp4Route,
  dhcp4Option,
  dhcp4Type,
  newRequest,
  optionAddresses,
  optionNumber,
} from '../../../wire/dhcp/dhcp4.ts'
import { parseMac } from '../../../wire/ip.ts'
import type { Clock } from './operator.ts'

/** What a server gave, and until when (by the client's clock). */
export interface Dhcp4Lease {
  /** With prefix length. */
  address: string
  server: string
  /** The station that spoke for the server: itself, or its relay. */
  serverStation: string
  renewAt: number
  rebindAt: number
  expiresAt: number
  routers: string[]
  routes?: Dhcp4Route[]
  nameServers: string[]
  timeServers: string[]
  search: string[]
  domain: string
  hostname: string
  mtu?: number
}

/** Whom a message is for: everybody on the link, or one address at one station. */
export type Recipient = 'everybody' | { address: string; station: string; from: string }

/** The link as the client uses it. */
export interface Dhcp4Door {
  send(message: Dhcp4Message, to: Recipient): void
  /** The next answer to a transaction, undefined when none came in time. */
  receive(transaction: number, milliseconds: number, signal: AbortSignal): Promise<{ message: Dhcp4Message; station: string } | undefined>
  /** Whether some other station has the address. */
  taken(address: string, signal: AbortSignal): Promise<boolean>
}

/** How to ask. */
export interface Dhcp4Settings {
  hardwareAddress: string
  clientIdentifier: 'none' | 'mac' | 'duid'
  duid?: Uint8Array
  skipHostname: boolean
}

const pauses = [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 64_000]
const requestPauses = [500, 1000, 2000]
const afterDecline = 10_000
const leastLease = 10_000

/** Keeps a lease until the signal; `tell` is given each new one, and undefined when there is none any more. */
export class Dhcp4Client {
  readonly #door: Dhcp4Door
  readonly #clock: Clock
  readonly #settings: Dhcp4Settings
  readonly #log: Logger
  readonly #hostname: () => string
  readonly #random: () => number
  #began = 0

  constructor(options: {
    door: Dhcp4Door
    clock: Clock
    settings: Dhcp4Settings
    log: Logger
    hostname?: () => string
    random?: () => number
  }) {
    this.#door = options.door
    this.#clock = options.clock
    this.#settings = options.settings
    this.#log = options.log
    this.#hostname = options.hostname ?? (() => '')
    this.#random = options.random ?? Math.random
  }

  async run(tell: (lease: Dhcp4Lease | undefined) => void, signal: AbortSignal, previous?: Dhcp4Lease): Promise<void> {
    let lease = previous && previous.expiresAt > this.#clock.now() ? await this.#confirm(previous, signal) : undefined
    if (previous && !lease && !signal.aborted) tell(undefined)
    while (!signal.aborted) {
      lease ??= await this.#acquire(signal)
      if (!lease) return // the signal
      this.#log.info('address leased', { address: lease.address, server: lease.server, seconds: this.#left(lease.expiresAt) })
      tell(lease)
      lease = await this.#keep(lease, tell, signal)
      if (!lease && !signal.aborted) tell(undefined)
    }
  }

  #left = (at: number) => (Number.isFinite(at) ? Math.round((at - this.#clock.now()) / 1000) : undefined)

  async #acquire(signal: AbortSignal): Promise<Dhcp4Lease | undefined> {
    this.#began = this.#clock.now()
    for (let attempt = 0; !signal.aborted; attempt++) {
      const pause = pauses[Math.min(attempt, pauses.length - 1)]!
      const asked = this.#message(dhcp4Type.discover, [])
      this.#send(asked, 'everybody')
      const offer = await this.#answer(asked, [dhcp4Type.offer], pause, signal)
      if (!offer) continue
      const { server } = offer.options
      if (server === undefined || offer.message.yourAddress === '0.0.0.0') continue
      const lease = await this.#request(offer.message, server, signal)
      if (lease === 'refused') await this.#clock.sleep(this.#jitter(pause), signal)
      else if (lease && (await this.#door.taken(bare(lease.address), signal))) {
        this.#log.warn('the leased address is taken, it is declined', { address: lease.address, server })
        this.#send(this.#message(dhcp4Type.decline, [requested(lease.address), [dhcp4Option.server, optionAddresses(server)]]), 'everybody')
        await this.#clock.sleep(afterDecline, signal)
      } else if (lease) return lease
    }
    return undefined
  }

  async #request(offer: Dhcp4Message, server: string, signal: AbortSignal): Promise<Dhcp4Lease | 'refused' | undefined> {
    const address = offer.yourAddress
    const message = this.#message(dhcp4Type.request, [requested(address), [dhcp4Option.server, optionAddresses(server)]])
    message.transaction = offer.transaction // RFC 2131 4.4.1, table 5
    for (const pause of requestPauses) {
      if (signal.aborted) return undefined
      this.#send(message, 'everybody')
      const answer = await this.#answer(message, [dhcp4Type.ack, dhcp4Type.nak], pause, signal)
      if (!answer) continue
      if (answer.options.type === dhcp4Type.ack) return this.#leaseOf(answer)
      this.#log.warn('the server refuses the address it offered', { address, server, reason: answer.options.message })
      return 'refused'
    }
    return undefined
  }

  /** Asks for the lease of before (INIT-REBOOT): undefined when it is refused; when nobody answers it holds on. */
  async #confirm(lease: Dhcp4Lease, signal: AbortSignal): Promise<Dhcp4Lease | undefined> {
    this.#began = this.#clock.now()
    const message = this.#message(dhcp4Type.request, [requested(lease.address)])
    for (const pause of requestPauses) {
      if (signal.aborted) return lease
      this.#send(message, 'everybody')
      const answer = await this.#answer(message, [dhcp4Type.ack, dhcp4Type.nak], pause, signal)
      if (answer) return answer.options.type === dhcp4Type.ack ? (this.#leaseOf(answer) ?? lease) : undefined
    }
    return lease
  }

  /** Waits, renews and rebinds as long as the lease holds; undefined when it does no more. */
  async #keep(lease: Dhcp4Lease, tell: (lease: Dhcp4Lease) => void, signal: AbortSignal): Promise<Dhcp4Lease | undefined> {
    await this.#until(lease.renewAt, signal)
    this.#began = this.#clock.now()
    while (!signal.aborted) {
      const now = this.#clock.now()
      if (now >= lease.expiresAt) {
        this.#log.warn('the lease has expired', { address: lease.address })
        return undefined
      }
      const renewing = now < lease.rebindAt
      const message = { ...this.#message(dhcp4Type.request, []), clientAddress: bare(lease.address) }
      this.#send(message, renewing ? { address: lease.server, station: lease.serverStation, from: bare(lease.address) } : 'everybody')
      // RFC 2131 4.4.5: half of what is left, but not more often than once a minute
      const left = (renewing ? lease.rebindAt : lease.expiresAt) - now
      const pause = Math.min(left, Math.max(left / 2, 60_000))
      const answer = await this.#answer(message, [dhcp4Type.ack, dhcp4Type.nak], pause, signal)
      if (!answer) continue
      if (answer.options.type === dhcp4Type.nak) {
        this.#log.warn('the server takes the address back', { address: lease.address, reason: answer.options.message })
        return undefined
      }
      const renewed = this.#leaseOf(answer)
      if (!renewed) continue
      if (bare(renewed.address) !== bare(lease.address)) return renewed
      lease = renewed
      this.#log.debug('lease renewed', { address: lease.address, seconds: this.#left(lease.expiresAt) })
      tell(lease)
      await this.#until(lease.renewAt, signal)
      this.#began = this.#clock.now()
    }
    return lease
  }

  async #until(moment: number, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const left = moment - this.#clock.now()
      if (left <= 0) return
      await this.#clock.sleep(Math.min(left, 86_400_000), signal)
    }
  }

  #message(type: number, more: [number, Uint8Array][]): Dhcp4Message {
    const { hardwareAddress, clientIdentifier, duid, skipHostname } = this.#settings
    const name = this.#hostname()
    const asks = type === dhcp4Type.discover || type === dhcp4Type.request
    const options: [number, Uint8Array][] = [[dhcp4Option.messageType, optionNumber(type, 1)]]
    const mac = parseMac(hardwareAddress) ?? new Uint8Array()
    if (clientIdentifier === 'mac') options.push([dhcp4Option.clientId, Buffer.concat([Buffer.from([1]), mac])])
    // RFC 4361 6.1: 255, which association of ours, who we are
    if (clientIdentifier === 'duid' && duid)
      options.push([dhcp4Option.clientId, Buffer.concat([Buffer.from([255]), mac.subarray(-4), duid])])
    if (asks) {
      if (name && !skipHostname) options.push([dhcp4Option.hostname, Buffer.from(name)])
      const {
        subnetMask,
        routers,
        nameServers,
        domain,
        mtu,
        timeServers,
        leaseTime,
        renewalTime,
        rebindingTime,
        search,
        routes,
        hostname,
      } = dhcp4Option
      // RFC 3442: routes are asked for before routers
      const wanted = [subnetMask, routes, routers, nameServers, domain, mtu, timeServers, leaseTime, renewalTime, rebindingTime, search]
      options.push([dhcp4Option.parameters, Uint8Array.from(skipHostname ? wanted : [...wanted, hostname])])
      options.push([dhcp4Option.maxSize, optionNumber(1472, 2)])
    }
    const message = newRequest(Math.floor(this.#random() * 2 ** 32), hardwareAddress, [...options, ...more])
    message.seconds = Math.floor((this.#clock.now() - this.#began) / 1000)
    return message
  }

  #send(message: Dhcp4Message, to: Recipient): void {
    try {
      this.#door.send(message, to)
    } catch (error) {
      this.#log.debug('sending failed, it is tried again', { error: error instanceof Error ? error.message : String(error) })
    }
  }

  /** The first answer of one of the types within a time. */
  async #answer({ transaction }: Dhcp4Message, types: readonly number[], milliseconds: number, signal: AbortSignal) {
    const end = this.#clock.now() + this.#jitter(milliseconds)
    while (!signal.aborted) {
      const left = end - this.#clock.now()
      if (left <= 0) return undefined
      const answer = await this.#door.receive(transaction, left, signal)
      if (!answer) return undefined
      const options = new Dhcp4Options(answer.message.options)
      if (answer.message.operation === 'reply' && types.includes(options.type ?? 0)) return { ...answer, options }
    }
    return undefined
  }

  #leaseOf({ message, options, station }: { message: Dhcp4Message; options: Dhcp4Options; station: string }): Dhcp4Lease | undefined {
    const { leaseTime, server, prefixLength } = options
    if (message.yourAddress === '0.0.0.0' || leaseTime === undefined) return undefined
    const now = this.#clock.now()
    const length = Math.max(leastLease, leaseTime * 1000)
    const renew = options.renewalTime === undefined ? length / 2 : options.renewalTime * 1000
    const rebind = options.rebindingTime === undefined ? (length * 7) / 8 : options.rebindingTime * 1000
    const ordered = renew <= rebind && rebind <= length
    return {
      address: `${message.yourAddress}/${prefixLength ?? 32}`,
      server: server ?? message.nextServer,
      serverStation: station,
      renewAt: now + (ordered ? renew : length / 2),
      rebindAt: now + (ordered ? rebind : (length * 7) / 8),
      expiresAt: now + length,
      routers: options.routers,
      routes: options.routes,
      nameServers: options.nameServers,
      timeServers: options.timeServers,
      search: options.search,
      domain: options.domain,
      hostname: this.#settings.skipHostname ? '' : options.hostname,
      mtu: options.mtu,
    }
  }

  // RFC 2131 4.1: clients that begin together do not go on together
  #jitter = (milliseconds: number) => milliseconds * (0.9 + this.#random() * 0.2)
}

const bare = (address: string) => address.split('/')[0] ?? address
const requested = (address: string): [number, Uint8Array] => [dhcp4Option.requestedAddress, optionAddresses(bare(address))]
