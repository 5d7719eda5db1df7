import type { Logger } from './log.ts'

/**
 * Starts work that nobody waits for. A rejection without a handler ends PID 1 and with it the machine, so every failure
 * becomes one log line here and nothing else. Given a function, what it throws before its first await is caught as well.
 */
export function background(
  work: PromiseLike<unknown> | (() => unknown),
  log: Pick<Logger, 'error'>,
  failure = 'background task failed',
  fields: Record<string, unknown> = {},
): void {
  const failed = (error: unknown) => {
    try {
      log.error(failure, { ...fields, error })
    } catch {
      // a log that cannot be written to is no reason to end the machine
    }
  }
  try {
    const running = typeof work === 'function' ? work() : work
    // Unlike a chain of `finally` or `then` without a second argument, this one ends here.
    Promise.resolve(running).then(() => {}, failed)
  } catch (error) {
    failed(error)
  }
}
