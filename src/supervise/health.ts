/**
 * Whether a running service is well. Until the first good answer it is asked again quickly, so that what waits for it need not wait for
 * a period; a bad answer counts only once the initial delay has passed.
 */

import type { Clock } from '../cosi/clock.ts'

/** How to ask, and how often (milliseconds). */
export interface HealthCheck {
  /** Resolves when the service is well, throws what is wrong. */
  check(signal: AbortSignal): Promise<void>
  readonly initialDelay?: number
  readonly period?: number
  readonly timeout?: number
}

/** What is known about a service's health. */
export interface Health {
  readonly unknown: boolean
  readonly healthy: boolean
  readonly lastMessage: string
  readonly lastChange: Date
}

const firstInterval = 40
const growth = 1.25
/** While the first good answer is awaited, waiting between questions stays below this. */
const firstLimit = 1000

/** Asks until the signal is aborted, telling each answer: undefined when well, else what is wrong. */
export async function watchHealth(
  { check, initialDelay = 1000, period = 5000, timeout = 500 }: HealthCheck,
  clock: Clock,
  signal: AbortSignal,
  tell: (wrong: string | undefined) => void,
): Promise<void> {
  const settled = clock.deadline(initialDelay)
  let interval = Math.min(firstInterval, period)
  let first = true
  while (!signal.aborted) {
    const wrong = await ask(check, timeout, clock, signal)
    if (signal.aborted) return
    if (wrong === undefined) first = false
    if (!first || settled.over) tell(wrong)
    await clock.sleep(first ? interval : period, signal)
    if (first) interval = Math.min(period, firstLimit, interval * growth)
  }
}

/** One question with its deadline. */
async function ask(check: HealthCheck['check'], timeout: number, clock: Clock, signal: AbortSignal): Promise<string | undefined> {
  const over = new AbortController()
  const abort = () => over.abort()
  signal.addEventListener('abort', abort)
  try {
    const late = clock.sleep(timeout, over.signal).then(() => 'no answer in time')
    return await Promise.race([check(over.signal).then(() => undefined), late])
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  } finally {
    over.abort()
    signal.removeEventListener('abort', abort)
  }
}
