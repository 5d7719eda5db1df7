/**
 * Watches whether a running service is healthy. Until the first success the check runs at short intervals, so that
 * dependent services need not wait for a full period. A failure counts only after the initial delay.
 */

import type { Clock } from '../cosi/clock.ts'
import { messageOf } from '../wire/error-message.ts'

/** What to check and how often (milliseconds). */
export interface HealthCheck {
  /** Resolves when the service is healthy, throws the problem otherwise. */
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

/** Before the first check. */
export function unknownHealth(since: Date): Health {
  return { unknown: true, healthy: false, lastMessage: '', lastChange: since }
}

/** The health after a check, and whether it turned: became known, or healthy, or unhealthy. */
export function healthAfter(before: Health, problem: string | undefined, now: Date): { health: Health; turned: boolean } {
  const healthy = problem === undefined
  const lastMessage = problem ?? ''
  const turned = before.unknown || before.healthy !== healthy
  if (!turned && before.lastMessage === lastMessage) return { health: before, turned }
  return { health: { unknown: false, healthy, lastMessage, lastChange: turned ? now : before.lastChange }, turned }
}

const firstInterval = 40
const growth = 1.25
/** Upper limit of the interval before the first success. */
const firstLimit = 1000

/** Runs checks until the signal is aborted and reports each result: undefined when healthy, else the problem. */
export async function watchHealth(
  { check, initialDelay = 1000, period = 5000, timeout = 500 }: HealthCheck,
  clock: Clock,
  signal: AbortSignal,
  report: (problem: string | undefined) => void,
): Promise<void> {
  const settled = clock.deadline(initialDelay)
  let interval = Math.min(firstInterval, period)
  let first = true
  while (!signal.aborted) {
    const problem = await runCheck(check, timeout, clock, signal)
    if (signal.aborted) return
    if (problem === undefined) first = false
    if (!first || settled.over) report(problem)
    await clock.sleep(first ? interval : period, signal)
    if (first) interval = Math.min(period, firstLimit, interval * growth)
  }
}

/** Runs one check with its timeout. */
async function runCheck(check: HealthCheck['check'], timeout: number, clock: Clock, signal: AbortSignal): Promise<string | undefined> {
  const over = new AbortController()
  const abort = () => over.abort()
  signal.addEventListener('abort', abort)
  try {
    const late = clock.sleep(timeout, over.signal).then(() => 'no answer in time')
    return await Promise.race([check(over.signal).then(() => undefined), late])
  } catch (error) {
    return messageOf(error)
  } finally {
    over.abort()
    signal.removeEventListener('abort', abort)
  }
}
