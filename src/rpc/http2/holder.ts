/** Amounts that are limited. */
export interface Amounts {
  readonly connections: number
  readonly calls: number
  readonly bytes: number
}

/** The name of an amount. */
export type Resource = keyof Amounts

/** Limits for the clients of one address (IPv6: one /64), for those of one identity, and for all together. */
export interface ShareLimits {
  readonly address: Amounts
  readonly identity: Amounts
  readonly all: Amounts
}

/** Something that holds bytes and can be made to release them. */
export interface Holder {
  /** Bytes that it holds. */
  readonly charged: number
  /** Ends it because its client holds too much. */
  exhaust(message: string): void
}

/** A connection, as far as eviction needs it. */
export interface HeldConnection extends Holder {
  /** Number of open calls. */
  readonly size: number
  /** Whether all its calls still wait for their request. */
  readonly awaitsRequests: boolean
}
