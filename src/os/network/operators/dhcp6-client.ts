/**
 * The DHCPv6 client state machine for one address of one link (RFC 8415 18.2). Sockets and timers are injected.
 *
 *   solicit → (rapid commit reply, or) advertise → request → reply → bound → (T1) renew → (T2) rebind → (expired) solicit
 *                                                                   ↘ (another host holds it) decline → solicit
 *
 * A previous lease is confirmed first. Prefixes are not requested, and ignored if a server sends some.
 */
import type { Logger } from '../../../cosi/log.ts'
import { DecodeError } from '../../../wire/decode-error.ts'
import {
  type Dhcp6Association,
  Dhcp6Meaning,
  type Dhcp6Message,
  dhcp6Option,
  dhcp6Status,
  dhcp6Type,
  writeAssociation,
} from '../../../wire/dhcp/dhcp6.ts'
import { messageOf } from '../../../wire/error-message.ts'
import type { Clock } from './operator.ts'

/** A lease, with expiry times on the client's clock. */
export interface Dhcp6Lease {
  addresses: string[]
  server: Uint8Array
  renewAt: number
  rebindAt: number
  expiresAt: number
  nameServers: string[]
  search: string[]
  timeServers: string[]
}

/** The link as the client uses it. Every message is multicast to all servers. */
export interface Dhcp6Transport {
  send(message: Dhcp6Message): void
  /** The next answer to a transaction, undefined on timeout. */
  receive(transaction: number, milliseconds: number, signal: AbortSignal): Promise<Dhcp6Message | undefined>
  /** Whether another station holds one of the reported addresses, once duplicate address detection has finished. */
  taken(addresses: readonly string[], signal: AbortSignal): Promise<boolean>
}

interface Retransmission {
  first: number
  longest: number
  /** Maximum number of transmissions, if limited. */
  most?: number
}

/** Retransmission parameters (RFC 8415 7.6), in milliseconds. */
const retransmission = {
  solicit: { first: 1000, longest: 3_600_000 },
  request: { first: 1000, longest: 30_000, most: 10 },
  confirm: { first: 1000, longest: 4000, most: 4 },
  renew: { first: 10_000, longest: 600_000 },
  rebind: { first: 10_000, longest: 600_000 },
  decline: { first: 1000, longest: 16_000, most: 4 },
} as const satisfies Record<string, Retransmission>

type MessageName = keyof typeof retransmission

const leastLease = 10_000
/** Delay after a decline, so that a server that offers the same address again is not queried in a loop. */
const afterDecline = 10_000

/** Maintains a lease until aborted. `report` receives each new lease, and undefined when the lease is lost. */
export class Dhcp6Client {
  readonly #transport: Dhcp6Transport
  readonly #clock: Clock
  readonly #log: Logger
  readonly #duid: Uint8Array
  readonly #association: number
  readonly #random: () => number

  constructor(options: {
    transport: Dhcp6Transport
    clock: Clock
    log: Logger
    duid: Uint8Array
    association: number
    random?: () => number
  }) {
    this.#transport = options.transport
    this.#clock = options.clock
    this.#log = options.log
    this.#duid = options.duid
    this.#association = options.association
    this.#random = options.random ?? Math.random
  }

  async run(report: (lease: Dhcp6Lease | undefined) => void, signal: AbortSignal, previous?: Dhcp6Lease): Promise<void> {
    let lease = previous && previous.expiresAt > this.#clock.now() ? await this.#confirm(previous, signal) : undefined
    if (previous && !lease && !signal.aborted) report(undefined)
    while (!signal.aborted) {
      lease ??= await this.#acquire(signal)
      if (!lease) return // aborted
      this.#log.info('address leased', { address: lease.addresses.join(', ') })
      report(lease)
      if (await this.#transport.taken(lease.addresses, signal)) {
        report(undefined)
        await this.#decline(lease, signal)
        lease = undefined
        continue
      }
      lease = await this.#keep(lease, report, signal)
      if (!lease && !signal.aborted) report(undefined)
    }
  }

  async #acquire(signal: AbortSignal): Promise<Dhcp6Lease | undefined> {
    while (!signal.aborted) {
      let best: Dhcp6Meaning | undefined
      const quick = await this.#ask('solicit', [{ number: dhcp6Option.rapidCommit, value: new Uint8Array() }], [], signal, {
        types: [dhcp6Type.advertise, dhcp6Type.reply],
        take: (type, meaning) => {
          if (!this.#usable(meaning)) return false
          if (type === dhcp6Type.reply) return meaning.rapidCommit
          if (!best || meaning.preference > best.preference) best = meaning
          return meaning.preference === 255 // RFC 8415 18.2.1: preference 255 ends the wait for other servers
        },
        // Advertisements within the first retransmission time are compared; later the first one is accepted.
        enough: () => best !== undefined,
      })
      if (signal.aborted) return undefined
      if (quick?.rapidCommit) return this.#leaseOf(quick)
      const offer = quick ?? best
      const server = offer?.serverId
      if (!offer || !server) continue
      const addresses = (offer.association(this.#association)?.addresses ?? []).map(({ address }) => address)
      const reply = await this.#ask('request', [{ number: dhcp6Option.serverId, value: server }], addresses, signal, {
        types: [dhcp6Type.reply],
      })
      const lease = reply && this.#usable(reply) ? this.#leaseOf(reply) : undefined
      if (lease) return lease
      if (reply) await this.#clock.sleep(this.#jitter(1000), signal)
    }
    return undefined
  }

  /** Confirms that the previous lease is valid on this link. Without an answer it stays valid. */
  async #confirm(lease: Dhcp6Lease, signal: AbortSignal): Promise<Dhcp6Lease | undefined> {
    const reply = await this.#ask('confirm', [], lease.addresses, signal, { types: [dhcp6Type.reply] })
    return reply && reply.status.code !== dhcp6Status.success ? undefined : lease
  }

  /** Declines a lease whose address another station holds (RFC 8415 18.2.8). */
  async #decline({ addresses, server }: Dhcp6Lease, signal: AbortSignal): Promise<void> {
    this.#log.warn('declining leased address, another host holds it', { address: addresses.join(', ') })
    const from = [{ number: dhcp6Option.serverId, value: server }]
    await this.#ask('decline', from, addresses, signal, { types: [dhcp6Type.reply] })
    await this.#clock.sleep(afterDecline, signal)
  }

  async #keep(lease: Dhcp6Lease, report: (lease: Dhcp6Lease) => void, signal: AbortSignal): Promise<Dhcp6Lease | undefined> {
    for (;;) {
      await this.#until(lease.renewAt, signal)
      if (signal.aborted) return lease
      const held = [{ number: dhcp6Option.serverId, value: lease.server }]
      const reply =
        (this.#clock.now() < lease.rebindAt
          ? await this.#ask('renew', held, lease.addresses, signal, { types: [dhcp6Type.reply], end: lease.rebindAt })
          : undefined) ?? (await this.#ask('rebind', [], lease.addresses, signal, { types: [dhcp6Type.reply], end: lease.expiresAt }))
      if (signal.aborted) return lease
      if (!reply || !this.#usable(reply)) {
        const status = reply?.association(this.#association)?.status ?? reply?.status
        this.#log.warn(reply ? 'server revoked the lease' : 'lease expired', {
          address: lease.addresses.join(', '),
          reason: status?.message,
        })
        return undefined
      }
      const renewed = this.#leaseOf(reply)
      if (!Bun.deepEquals(renewed.addresses, lease.addresses)) return renewed
      lease = renewed
      this.#log.debug('lease renewed', { address: lease.addresses.join(', ') })
      report(lease)
    }
  }

  #usable(meaning: Dhcp6Meaning): boolean {
    const association = meaning.association(this.#association)
    return meaning.status.code === 0 && association?.status.code === 0 && alive(association).length > 0 && meaning.serverId !== undefined
  }

  /** Sends a message with exponential backoff (RFC 8415 15) until answered, the maximum count or the end time. */
  async #ask(
    name: MessageName,
    more: Dhcp6Message['options'],
    addresses: readonly string[],
    signal: AbortSignal,
    how: { types: readonly number[]; take?: (type: number, meaning: Dhcp6Meaning) => boolean; enough?: () => boolean; end?: number },
  ): Promise<Dhcp6Meaning | undefined> {
    const { first, longest, most }: Retransmission = retransmission[name]
    const began = this.#clock.now()
    const transaction = Math.floor(this.#random() * 2 ** 24)
    let delay = this.#jitter(first)
    for (let tries = 0; !signal.aborted && tries < (most ?? Number.POSITIVE_INFINITY); tries++) {
      const now = this.#clock.now()
      if (how.end !== undefined && now >= how.end) return undefined
      this.#send({ type: dhcp6Type[name], transaction, options: this.#options(name, now - began, addresses, more) })
      const until = Math.min(now + delay, how.end ?? Number.POSITIVE_INFINITY)
      for (let left = until - this.#clock.now(); left > 0 && !signal.aborted; left = until - this.#clock.now()) {
        const message = await this.#transport.receive(transaction, left, signal)
        if (!message) break
        const meaning = new Dhcp6Meaning(message)
        if (!how.types.includes(message.type) || !sameBytes(meaning.clientId, this.#duid)) continue
        if (!how.take || how.take(message.type, meaning)) return meaning
        if (tries > 0 && how.enough?.()) return undefined
      }
      if (how.enough?.()) return undefined
      delay = Math.min(delay * 2, longest) * (0.9 + this.#random() * 0.2)
    }
    return undefined
  }

  #options(name: MessageName, elapsed: number, addresses: readonly string[], more: Dhcp6Message['options']): Dhcp6Message['options'] {
    const number16 = (value: number) => Buffer.from([value >> 8, value & 255])
    const wanted = [dhcp6Option.nameServers, dhcp6Option.search, dhcp6Option.sntpServers, dhcp6Option.ntpServer, 82] // 82: SOL_MAX_RT
    return [
      { number: dhcp6Option.clientId, value: this.#duid },
      ...more,
      { number: dhcp6Option.iaNa, value: writeAssociation(this.#association, addresses) },
      ...(name === 'confirm' ? [] : [{ number: dhcp6Option.request, value: Buffer.concat(wanted.map(number16)) }]),
      { number: dhcp6Option.elapsed, value: number16(Math.min(0xffff, Math.floor(elapsed / 10))) },
    ]
  }

  #send(message: Dhcp6Message): void {
    try {
      this.#transport.send(message)
    } catch (error) {
      this.#log.debug('send DHCP message failed, will retry', { error: messageOf(error) })
    }
  }

  #leaseOf(meaning: Dhcp6Meaning): Dhcp6Lease {
    const association = meaning.association(this.#association)
    const server = meaning.serverId
    if (!association || !server) throw new DecodeError('DHCPv6 reply', 0, 'no association or no server')
    const addresses = alive(association)
    const now = this.#clock.now()
    const length = Math.max(leastLease, Math.min(...addresses.map(({ valid }) => valid)) * 1000)
    const preferred = Math.min(length, Math.max(leastLease / 2, Math.min(...addresses.map((given) => given.preferred)) * 1000))
    // RFC 8415 21.4: defaults for times the server leaves to the client
    const t1 = association.t1 > 0 ? association.t1 * 1000 : preferred * 0.5
    const t2 = association.t2 > 0 ? association.t2 * 1000 : preferred * 0.8
    const ordered = t1 <= t2 && t2 <= length
    return {
      addresses: addresses.map(({ address }) => address),
      server,
      renewAt: now + (ordered ? t1 : length * 0.5),
      rebindAt: now + (ordered ? t2 : length * 0.8),
      expiresAt: now + length,
      nameServers: meaning.nameServers,
      search: meaning.search,
      timeServers: meaning.timeServers,
    }
  }

  async #until(moment: number, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const left = moment - this.#clock.now()
      if (left <= 0) return
      await this.#clock.sleep(Math.min(left, 86_400_000), signal)
    }
  }

  #jitter = (milliseconds: number) => milliseconds * (1 + this.#random() * 0.1)
}

const alive = ({ addresses }: Dhcp6Association) => addresses.filter(({ valid }) => valid > 0)
const sameBytes = (a: Uint8Array | undefined, b: Uint8Array) => a !== undefined && Buffer.from(a).equals(b)
