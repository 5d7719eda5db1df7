/** Somewhere a configuration can come from before anybody is asked over the API. */
import type { Logger } from '../../../cosi/log.ts'

/** What a look is given. */
export interface Look {
  /** Fires when this attempt has taken long enough. */
  readonly signal: AbortSignal
  readonly log: Logger
}

/** One source of the machine's configuration. */
export interface Source {
  /** As the field calls it: `embedded`, `cmdline-early`, the platform's name, `cmdline-late`. */
  readonly name: string
  /** Whether an attempt that failed may succeed later; what is written down stays as it is. */
  readonly retried: boolean
  /** The text; undefined when there is none here. Throws errors whose message is one line. */
  look(look: Look): Promise<string | undefined> | string | undefined
}

/** The most a configuration may take, compressed or not, in bytes. */
export const largestConfig = 4 << 20
