import { type Clock, systemClock } from './clock.ts'
import type { Logger } from './log.ts'

/** More unhandled errors than this within a period (ms) mean that the process is looping: it exits. */
const most = 100
const period = 10_000

/**
 * The last resort of a process that must not exit: an unhandled error is a bug. The error is logged with its stack, the
 * task that caused it is lost, and everything else continues.
 */
export function takeUnexpected(parts: {
  readonly log: Pick<Logger, 'error'>
  /** Ends the process when it cannot continue. */
  giveUp(what: string, error: unknown): void
  readonly clock?: Pick<Clock, 'elapsed'>
}): (what: string, error: unknown) => void {
  const { log, giveUp, clock = systemClock } = parts
  let since = clock.elapsed()
  let count = 0
  return (what, error) => {
    const now = clock.elapsed()
    if (now - since > period) [since, count] = [now, 0]
    if (++count > most) return giveUp(what, error)
    try {
      log.error('unexpected error', { kind: what, error, stack: error instanceof Error ? error.stack : undefined })
    } catch (failure) {
      giveUp('log failed', failure)
    }
  }
}

/** Subscribes to every unhandled error of this process. */
export function onUnexpected(take: (what: string, error: unknown) => void): void {
  process.on('uncaughtException', (error) => take('uncaught exception', error))
  process.on('unhandledRejection', (error) => take('unhandled rejection', error))
}
