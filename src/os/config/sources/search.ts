/**
 * Searches the sources in order until the configuration is whole. A part is kept, put in force and completed by the next source. A
 * failure is logged in one line, and retried where that can help.
 */

import type { Logger } from '../../../cosi/log.ts'
import { ConfigError, formatIssue, type Issue } from '../../../document/config-error.ts'
import type { Mode } from '../../../document/kind.ts'
import { pause } from '../../../timing/pause.ts'
import { messageOf } from '../../../wire/error-message.ts'
import type { Machine } from '../../area.ts'
import { ConfigContainer } from '../container.ts'
import type { Source } from './source.ts'

/** Limits of the search, in milliseconds. */
export interface SearchLimits {
  /** One attempt at one source. */
  readonly attempt: number
  /** All attempts at one source. */
  readonly whole: number
  /** Delay before the second attempt, doubling up to `longestDelay`. */
  readonly delay: number
  readonly longestDelay: number
}

/** The documented defaults. */
export const defaultLimits: SearchLimits = { attempt: 3 * 60_000, whole: 3 * 3600_000, delay: 1000, longestDelay: 60_000 }

/** The inputs of a search. */
export interface Search {
  readonly sources: readonly Source[]
  readonly mode: Mode
  readonly log: Logger
  readonly events: Pick<Machine['events'], 'publish'>
  readonly signal: AbortSignal
  readonly limits?: SearchLimits
  /** Waits; a test replaces it. */
  readonly sleep?: (milliseconds: number, signal: AbortSignal) => Promise<void>
  /** Receives the current error. */
  report?(error?: unknown): void
  /** Receives every configuration found on the way, whole or not. */
  found(text: string, source: string): void
}

/** Whether a machine can start with it. */
export const isWhole = (config: ConfigContainer): boolean => config.v1alpha1?.machine !== undefined && config.v1alpha1.cluster !== undefined

/** True when a whole configuration was found. */
export async function search(task: Search, before?: ConfigContainer): Promise<boolean> {
  let config = before
  for (const source of task.sources) {
    const next = await lookWithRetries(source, config, task)
    if (task.signal.aborted) return false
    if (!next) continue
    config = next
    task.log.info('machine configuration found', { source: source.name, whole: isWhole(config) })
    task.found(config.toString(), source.name)
    if (isWhole(config)) return true
  }
  return false
}

/** The configuration with what this source adds; undefined when it adds nothing usable. */
async function lookWithRetries(source: Source, before: ConfigContainer | undefined, task: Search): Promise<ConfigContainer | undefined> {
  const { signal, log, limits = defaultLimits, sleep = pause, report = () => {} } = task
  let spent = 0
  for (let wait = limits.delay; !signal.aborted; wait = Math.min(limits.longestDelay, wait * 2)) {
    const since = performance.now()
    try {
      const text = await source.look({ signal: AbortSignal.any([signal, AbortSignal.timeout(limits.attempt)]), log })
      const config = text === undefined ? undefined : use(text, source, before, task)
      report()
      return config
    } catch (error) {
      if (signal.aborted) return undefined
      spent += performance.now() - since + wait
      const retryDelay = source.retried && spent < limits.whole
      refuse(source, error, task, retryDelay ? wait : undefined)
      report(error)
      if (!retryDelay) return undefined
    }
    // A temporary failure may be over at the next attempt.
    await sleep(wait, signal)
  }
  return undefined
}

/** The configuration so far with this text added. Throws ConfigError, or Unusable for violated rules. */
function use(text: string, source: Source, before: ConfigContainer | undefined, { mode, log }: Search): ConfigContainer {
  const config = before ? before.patch(text) : ConfigContainer.parse(text)
  const { errors, warnings } = config.validate(mode)
  if (errors.length > 0) throw new Unusable(errors)
  for (const warning of warnings) log.warn('machine configuration', { source: source.name, warning: formatIssue(warning) })
  return config
}

/** A configuration that can be parsed and violates rules. */
class Unusable extends Error {
  constructor(readonly issues: readonly Issue[]) {
    super(oneLine(issues.map(formatIssue)))
  }
}

function refuse(source: Source, error: unknown, { log, events }: Search, retryDelay?: number): void {
  const issues = error instanceof ConfigError || error instanceof Unusable ? error.issues.map(formatIssue) : undefined
  const message = issues ? oneLine(issues) : messageOf(error)
  const what = error instanceof Unusable ? 'machine configuration cannot be used' : 'machine configuration could not be read'
  log.error(what, { source: source.name, error: message, ...(retryDelay !== undefined && { retry_in: `${retryDelay}ms` }) })
  const event = error instanceof Unusable ? 'machine.ConfigValidationErrorEvent' : 'machine.ConfigLoadErrorEvent'
  events.publish(event, { error: `${source.name}: ${(issues ?? [message]).join('\n')}` })
}

const oneLine = (lines: readonly string[]): string => `${lines[0]}${lines.length > 1 ? `, and ${lines.length - 1} more` : ''}`
