/**
 * The DHCP client state machine for one link (RFC 2131 4.4). Sockets and timers are injected.
 *
 *   discover → offer → request → ack → probe → bound → (T1) renew → (T2) rebind → (expired) discover
 *
 * A NAK, or a declined address that another host holds, restarts at discover. A previous lease is requested first
 * (INIT-REBOOT). Retry delays grow up to a minute while no server answers.
 */

import type { Logger } from '../../../cosi/log.ts'
import { type Dhcp4Message, dhcp4Type, newRequest } from '../../../wire/dhcp/dhcp4.ts'
import { Dhcp4Options, type Dhcp4Route, dhcp4Option, optionAddresses, optionNumber } from '../../../wire/dhcp/dhcp4-options.ts'
import { messageOf } from '../../../wire/error-message.ts'
import { parseMac } from '../../../wire/ip.ts'
import { addressOnly } from '../../../wire/prefix.ts'
import type { Clock } from './operator.ts'

/** A lease, with expiry times on the client's clock. */
export interface Dhcp4Lease {
  /** With prefix length. */
  address: string
  server: string
  /** Hardware address the answer came from: the server, or its relay. */
  serverStation: string
  renewAt: number
  rebindAt: number
  expiresAt: number
  routers: string[]
  routes?: Dhcp4Route[] | undefined
  nameServers: string[]
  timeServers: string[]
  search: string[]
  domain: string
  hostname: string
  mtu?: number | undefined
}

/** Destination of a message: broadcast, or one address at one station. */
export type Recipient = 'everybody' | { address: string; station: string; from: string }

/** The link as the client uses it. */
export interface Dhcp4Transport {
  send(message: Dhcp4Message, to: Recipient): void
  /** The next answer to a transaction, undefined on timeout. */
  receive(transaction: number, milliseconds: number, signal: AbortSignal): Promise<{ message: Dhcp4Message; station: string } | undefined>
  /** Whether another host holds the address. */
  taken(address: string, signal: AbortSignal): Promise<boolean>
}

/** DHCP client options. */
export interface Dhcp4Settings {
  hardwareAddress: string
  clientIdentifier: 'none' | 'mac' | 'duid'
  duid?: Uint8Array
  skipHostname: boolean
}

const longestPause = 64_000
const pauses = [500, 1000, 2000, 4000, 8000, 16_000, 32_000, longestPause]
const requestPauses = [500, 1000, 2000]
const afterDecline = 10_000
const leastLease = 10_000

/** Maintains a lease until aborted. `report` receives each new lease, and undefined when the lease is lost. */
export class Dhcp4Client {
  readonly #transport: Dhcp4Transport
  readonly #clock: Clock
  readonly #settings: Dhcp4Settings
  readonly #log: Logger
  readonly #hostname: () => string
  readonly #random: () => number
  #began = 0

  constructor(options: {
    transport: Dhcp4Transport
    clock: Clock
    settings: Dhcp4Settings
    log: Logger
    hostname?: () => string
    random?: () => number
  }) {
    this.#transport = options.transport
    this.#clock = options.clock
    this.#settings = options.settings
    this.#log = options.log
    this.#hostname = options.hostname ?? (() => '')
    this.#random = options.random ?? Math.random
  }

  async run(report: (lease: Dhcp4Lease | undefined) => void, signal: AbortSignal, previous?: Dhcp4Lease): Promise<void> {
    let lease = previous && previous.expiresAt > this.#clock.now() ? await this.#confirm(previous, signal) : undefined
    if (previous && !lease && !signal.aborted) report(undefined)
    while (!signal.aborted) {
      lease ??= await this.#acquire(signal)
      if (!lease) return // aborted
      this.#log.info('address leased', { address: lease.address, server: lease.server, seconds: this.#left(lease.expiresAt) })
      report(lease)
      lease = await this.#keep(lease, report, signal)
      if (!lease && !signal.aborted) report(undefined)
    }
  }

  #left = (at: number) => (Number.isFinite(at) ? Math.round((at - this.#clock.now()) / 1000) : undefined)

  async #acquire(signal: AbortSignal): Promise<Dhcp4Lease | undefined> {
    this.#began = this.#clock.now()
    for (let attempt = 0; !signal.aborted; attempt++) {
      const delay = pauses[attempt] ?? longestPause
      const discover = this.#message(dhcp4Type.discover, [])
      this.#send(discover, 'everybody')
      const offer = await this.#answer(discover, [dhcp4Type.offer], delay, signal)
      if (!offer) continue
      const { server } = offer.options
      if (server === undefined || offer.message.yourAddress === '0.0.0.0') continue
      const lease = await this.#request(offer.message, server, signal)
      if (lease === 'refused') await this.#clock.sleep(this.#jitter(delay), signal)
      else if (lease && (await this.#transport.taken(addressOnly(lease.address), signal))) {
        this.#log.warn('declining leased address, another host holds it', { address: lease.address, server })
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
    for (const delay of requestPauses) {
      if (signal.aborted) return undefined
      this.#send(message, 'everybody')
      const answer = await this.#answer(message, [dhcp4Type.ack, dhcp4Type.nak], delay, signal)
      if (!answer) continue
      if (answer.options.type === dhcp4Type.ack) return this.#leaseOf(answer)
      this.#log.warn('server rejected the address it offered', { address, server, reason: answer.options.message })
      return 'refused'
    }
    return undefined
  }

  /** Requests the previous lease (INIT-REBOOT). Returns undefined if the server rejects it; without an answer the lease stays valid. */
  async #confirm(lease: Dhcp4Lease, signal: AbortSignal): Promise<Dhcp4Lease | undefined> {
    this.#began = this.#clock.now()
    const message = this.#message(dhcp4Type.request, [requested(lease.address)])
    for (const delay of requestPauses) {
      if (signal.aborted) return lease
      this.#send(message, 'everybody')
      const answer = await this.#answer(message, [dhcp4Type.ack, dhcp4Type.nak], delay, signal)
      if (answer) return answer.options.type === dhcp4Type.ack ? (this.#leaseOf(answer) ?? lease) : undefined
    }
    return lease
  }

  /** Waits, renews and rebinds while the lease is valid. Returns undefined when it is lost. */
  async #keep(lease: Dhcp4Lease, report: (lease: Dhcp4Lease) => void, signal: AbortSignal): Promise<Dhcp4Lease | undefined> {
    await this.#until(lease.renewAt, signal)
    this.#began = this.#clock.now()
    while (!signal.aborted) {
      const now = this.#clock.now()
      if (now >= lease.expiresAt) {
        this.#log.warn('lease expired', { address: lease.address })
        return undefined
      }
      const renewing = now < lease.rebindAt
      const message = { ...this.#message(dhcp4Type.request, []), clientAddress: addressOnly(lease.address) }
      this.#send(
        message,
        renewing ? { address: lease.server, station: lease.serverStation, from: addressOnly(lease.address) } : 'everybody',
      )
      // RFC 2131 4.4.5: half of the remaining time, but at most once a minute
      const left = (renewing ? lease.rebindAt : lease.expiresAt) - now
      const delay = Math.min(left, Math.max(left / 2, 60_000))
      const answer = await this.#answer(message, [dhcp4Type.ack, dhcp4Type.nak], delay, signal)
      if (!answer) continue
      if (answer.options.type === dhcp4Type.nak) {
        this.#log.warn('server revoked the lease', { address: lease.address, reason: answer.options.message })
        return undefined
      }
      const renewed = this.#leaseOf(answer)
      if (!renewed) continue
      if (addressOnly(renewed.address) !== addressOnly(lease.address)) return renewed
      lease = renewed
      this.#log.debug('lease renewed', { address: lease.address, seconds: this.#left(lease.expiresAt) })
      report(lease)
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
    const isRequest = type === dhcp4Type.discover || type === dhcp4Type.request
    const options: [number, Uint8Array][] = [[dhcp4Option.messageType, optionNumber(type, 1)]]
    const mac = parseMac(hardwareAddress) ?? new Uint8Array()
    if (clientIdentifier === 'mac') options.push([dhcp4Option.clientId, Buffer.concat([Buffer.from([1]), mac])])
    // RFC 4361 6.1: type 255, IAID, DUID
    if (clientIdentifier === 'duid' && duid)
      options.push([dhcp4Option.clientId, Buffer.concat([Buffer.from([255]), mac.subarray(-4), duid])])
    if (isRequest) {
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
      // RFC 3442: classless static routes precede routers in the parameter list
      const parameters = [subnetMask, routes, routers, nameServers, domain, mtu, timeServers, leaseTime, renewalTime, rebindingTime, search]
      options.push([dhcp4Option.parameters, Uint8Array.from(skipHostname ? parameters : [...parameters, hostname])])
      options.push([dhcp4Option.maxSize, optionNumber(1472, 2)])
    }
    const message = newRequest(Math.floor(this.#random() * 2 ** 32), hardwareAddress, [...options, ...more])
    message.seconds = Math.floor((this.#clock.now() - this.#began) / 1000)
    return message
  }

  #send(message: Dhcp4Message, to: Recipient): void {
    try {
      this.#transport.send(message, to)
    } catch (error) {
      this.#log.debug('send DHCP message failed, will retry', { error: messageOf(error) })
    }
  }

  /** The first answer of one of the types, undefined on timeout. */
  async #answer({ transaction }: Dhcp4Message, types: readonly number[], milliseconds: number, signal: AbortSignal) {
    const end = this.#clock.now() + this.#jitter(milliseconds)
    while (!signal.aborted) {
      const left = end - this.#clock.now()
      if (left <= 0) return undefined
      const answer = await this.#transport.receive(transaction, left, signal)
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

  // RFC 2131 4.1: random delays keep clients that start together apart
  #jitter = (milliseconds: number) => milliseconds * (0.9 + this.#random() * 0.2)
}

const requested = (address: string): [number, Uint8Array] => [dhcp4Option.requestedAddress, optionAddresses(addressOnly(address))]
