/** A place that may hold a configuration, searched before the machine waits for one over the API. */
import type { Logger } from '../../../cosi/log.ts'

/** The context of an attempt. */
export interface Look {
  /** Aborted when this attempt has taken too long. */
  readonly signal: AbortSignal
  readonly log: Logger
}

/** One source of the machine's configuration. */
export interface Source {
  /** Its documented name: `embedded`, `cmdline-early`, the platform's name, `cmdline-late`. */
  readonly name: string
  /** Whether a failed attempt may succeed later. */
  readonly retried: boolean
  /** The text; undefined when there is none here. Throws errors whose message is one line. */
  look(look: Look): Promise<string | undefined> | string | undefined
}

/** The largest configuration, compressed or not, in bytes. */
export const largestConfig = 4 << 20
