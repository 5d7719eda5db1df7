import { systemClock } from '../../../cosi/clock.ts'
import type { Logger } from '../../../cosi/log.ts'
import type { SpecOf } from '../../../cosi/resource.ts'
import type { PacketLink } from '../../../linux/net/packet.ts'
import type { AddressSpec } from '../resources/address.ts'
import type { HostnameSpec } from '../resources/hostname.ts'
import type { OperatorSpec } from '../resources/operator-spec.ts'
import type { RouteSpec } from '../resources/route.ts'

/** What an operator has found out about its link. */
export interface Findings {
  addresses: SpecOf<typeof AddressSpec>[]
  routes: SpecOf<typeof RouteSpec>[]
  mtu?: number
  hostname?: SpecOf<typeof HostnameSpec>
  nameServers: string[]
  searchDomains: string[]
  timeServers: string[]
  /** Until when (by the clock of operators) this holds if nobody says it again. */
  until?: number
}

/** Time as operators use it: milliseconds of a clock that never jumps. */
export interface Clock {
  now(): number
  /** Ends early, without an error, when the signal fires. */
  sleep(milliseconds: number, signal: AbortSignal): Promise<void>
}

/** What a running operator is given. */
export interface Operation {
  readonly spec: SpecOf<typeof OperatorSpec>
  readonly link: PacketLink
  /** Fires when the operator is not wanted any more, its link is gone or has no carrier. */
  readonly signal: AbortSignal
  readonly log: Logger
  readonly clock: Clock
  /** The machine's name as it is now, '' when it has none of its own. */
  hostname(): string
  /** The link's own IPv6 address, undefined while another station may have it. */
  linkLocal(): string | undefined
  /** Whether the kernel has given the link an address. */
  present(address: string): boolean
  /** Whether another station has an address that the kernel was given; undefined while that is not known. */
  taken(address: string): boolean | undefined
  /** Tells what holds from now on; undefined when nothing does. */
  tell(findings: Findings | undefined): void
  /** What the operator wrote here before its link went away: kept as long as the operator is wished. */
  readonly memory: Map<string, unknown>
}

/** Runs until its signal. */
export type Operator = (operation: Operation) => Promise<void>

/** The machine's clock. */
export const machineClock: Clock = { now: systemClock.elapsed, sleep: systemClock.sleep }
