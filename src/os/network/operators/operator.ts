import { systemClock } from '../../../cosi/clock.ts'
import type { Logger } from '../../../cosi/log.ts'
import type { SpecOf } from '../../../cosi/resource.ts'
import type { PacketLink } from '../../../linux/net/packet.ts'
import type { AddressSpec } from '../resources/address.ts'
import type { HostnameSpec } from '../resources/hostname.ts'
import type { OperatorSpec } from '../resources/operator-spec.ts'
import type { RouteSpec } from '../resources/route.ts'

/** Settings that an operator has obtained for its link. */
export interface Findings {
  addresses: SpecOf<typeof AddressSpec>[]
  routes: SpecOf<typeof RouteSpec>[]
  mtu?: number | undefined
  hostname?: SpecOf<typeof HostnameSpec>
  nameServers: string[]
  searchDomains: string[]
  timeServers: string[]
  /** Time (on the operators' clock) until which the findings are valid unless renewed. */
  until?: number
}

/** Monotonic clock of operators, in milliseconds. */
export interface Clock {
  now(): number
  /** Resolves early, without an error, when aborted. */
  sleep(milliseconds: number, signal: AbortSignal): Promise<void>
}

/** The context of a running operator. */
export interface Operation {
  readonly spec: SpecOf<typeof OperatorSpec>
  readonly link: PacketLink
  /** Aborted when the operator is no longer desired or its link is removed or loses carrier. */
  readonly signal: AbortSignal
  readonly log: Logger
  readonly clock: Clock
  /** The present hostname, '' if it does not originate from this machine. */
  hostname(): string
  /** The link's link-local IPv6 address, undefined until duplicate address detection has passed. */
  linkLocal(): string | undefined
  /** Whether an address is assigned to the link. */
  present(address: string): boolean
  /** Whether duplicate address detection found another station with an assigned address; undefined while it runs. */
  taken(address: string): boolean | undefined
  /** Publishes new findings; undefined withdraws them. */
  report(findings: Findings | undefined): void
  /** Publishes a problem that the operator keeps trying to end; without an error it is over. */
  problem(error?: unknown): void
  /** State kept over restarts of the operator, as long as its spec exists. */
  readonly memory: Map<string, unknown>
}

/** Runs until aborted. */
export type Operator = (operation: Operation) => Promise<void>

/** The machine's clock. */
export const machineClock: Clock = { now: systemClock.elapsed, sleep: systemClock.sleep }
