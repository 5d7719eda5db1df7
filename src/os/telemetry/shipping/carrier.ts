import type { Outbound } from '../../outbound.ts'
import type { Endpoint } from './endpoint.ts'

/** A connection to a receiver of lines. */
export interface Carrier {
  /** Hands over messages; resolves when the kernel has all of them. Rejects when the connection is lost or makes no progress. */
  send(texts: readonly string[]): Promise<void>
  /** How much was handed over since the connection began, in a unit of its own. */
  readonly sent: number
  /** How much of `sent` the receiver's kernel has. */
  acknowledged(): number
  /** Aborted with the error when the connection is lost. */
  readonly lost: AbortSignal
  /** Sends what was handed over and closes the connection. */
  close(): void
}

/** What a connection needs of the machine. */
export interface CarrierContext {
  /** Bytes that were written to a TCP socket and are not acknowledged. */
  unacknowledged(fd: number): number
  readonly outbound: Pick<Outbound, 'roots'>
}

/** Connects to a receiver; the host name is resolved each time. Rejects when it takes longer than 10 seconds. */
export type OpenCarrier = (endpoint: Endpoint, context: CarrierContext, signal: AbortSignal) => Promise<Carrier>

/** Milliseconds for a connection. */
export const connectTimeout = 10_000
/** Milliseconds in which a receiver must take something; then the connection counts as lost. */
export const stallTimeout = 30_000
