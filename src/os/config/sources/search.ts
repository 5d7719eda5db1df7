/**
 * Goes from source to source until the configuration is whole. One that is only a part is kept, put in force and
 * completed by the next; one that fails is told in one line, and tried again where that can help.
 */
import type { Logger } from '../../../cosi/log.ts'
import { pause } from '../../../cosi/pause.ts'
import { ConfigError, formatIssue, type Issue } from '../../../document/config-error.ts'
import type { Mode } from '../../../document/kind.ts'
import type { Events } from '../../runtime/events.ts'
import { ConfigContainer } from '../container.ts'
import type { Source } from './source.ts'

/** How long is tried. In milliseconds. */
export interface Patience {
  /** One attempt at one source. */
  readonly attempt: number
  /** All attempts at one source. */
  readonly whole: number
  /** Before the second attempt; twice as much before each next one, up to `longestPause`. */
  readonly pause: number
  readonly longestPause: number
}

/** As the field has it. */
export const patience: Patience = { attempt: 3 * 60_000, whole: 3 * 3600_000, pause: 1000, longestPause: 60_000 }

/** What a search needs. */
export interface Search {
  readonly sources: readonly Source[]
  readonly mode: Mode
  readonly log: Logger
  readonly events: Pick<Events, 'publish'>
  readonly signal: AbortSignal
  readonly patience?: Patience
  /** Waits; a test does not. */
  readonly sleep?: (milliseconds: number, signal: AbortSignal) => Promise<void>
  /** Told what cannot be read at the moment. */
  tell?(error?: unknown): void
  /** Given every configuration found on the way, whole or not. */
  found(text: string, source: string): void
}

/** Whether a machine can start with it. */
export const isWhole = (config: ConfigContainer): boolean => config.v1alpha1?.machine !== undefined && config.v1alpha1.cluster !== undefined

/** True when a whole configuration was found. */
export async function search(task: Search, before?: ConfigContainer): Promise<boolean> {
  let config = before
  for (const source of task.sources) {
    const next = await patiently(source, config, task)
    if (task.signal.aborted) return false
    if (!next) continue
    config = next
    task.log.info('machine configuration found', { source: source.name, whole: isWhole(config) })
    task.found(config.toString(), source.name)
    if (isWhole(config)) return true
  }
  return false
}

/** The configuration with what this source adds; undefined when it adds nothing, or nothing that can be used. */
async function patiently(source: Source, before: ConfigContainer | undefined, task: Search): Promise<ConfigContainer | undefined> {
  const { signal, log, patience: limits = patience, sleep = pause, tell = () => {} } = task
  let spent = 0
  for (let wait = limits.pause; !signal.aborted; wait = Math.min(limits.longestPause, wait * 2)) {
    const since = performance.now()
    try {
      const text = await source.look({ signal: AbortSignal.any([signal, AbortSignal.timeout(limits.attempt)]), log })
      const config = text === undefined ? undefined : use(text, source, before, task)
      tell()
      return config
    } catch (error) {
      if (signal.aborted) return undefined
      spent += performance.now() - since + wait
      const again = source.retried && spent < limits.whole
      refuse(source, error, task, again ? wait : undefined)
      tell(error)
      if (!again) return undefined
    }
    // What cannot be reached or used now may be mended when it is asked again.
    await sleep(wait, signal)
  }
  return undefined
}

/** The configuration so far with this text added. Throws ConfigError, or Unusable for what breaks rules. */
function use(text: string, source: Source, before: ConfigContainer | undefined, { mode, log }: Search): ConfigContainer {
  const config = before ? before.patch(text) : ConfigContainer.parse(text)
  const { errors, warnings } = config.validate(mode)
  if (errors.length > 0) throw new Unusable(errors)
  for (const warning of warnings) log.warn('machine configuration', { source: source.name, warning: formatIssue(warning) })
  return config
}

/** A configuration that can be read and breaks rules. */
class Unusable extends Error {
  constructor(readonly issues: readonly Issue[]) {
    super(oneLine(issues.map(formatIssue)))
  }
}

function refuse(source: Source, error: unknown, { log, events }: Search, again?: number): void {
  const issues = error instanceof ConfigError || error instanceof Unusable ? error.issues.map(formatIssue) : undefined
  const message = issues ? oneLine(issues) : (error as Error).message
  const what = error instanceof Unusable ? 'machine configuration cannot be used' : 'machine configuration could not be read'
  log.error(what, { source: source.name, error: message, ...(again !== undefined && { retry_in: `${again}ms` }) })
  const event = error instanceof Unusable ? 'machine.ConfigValidationErrorEvent' : 'machine.ConfigLoadErrorEvent'
  events.publish(event, { error: `${source.name}: ${(issues ?? [message]).join('\n')}` })
}

const oneLine = (lines: readonly string[]): string => `${lines[0]}${lines.length > 1 ? `, and ${lines.length - 1} more` : ''}`
