import type { Logger } from './log.ts'

/**
 * Starts work that nothing awaits. An unhandled rejection ends PID 1 and with it the machine, so every failure becomes one
 * log line here. When `work` is a function, what it throws before its first await is caught too.
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
      // a failing log must not end the machine
    }
  }
  try {
    const running = typeof work === 'function' ? work() : work
    // Unlike a chain of `finally`, or of `then` without a second argument, this promise never rejects.
    Promise.resolve(running).then(() => {}, failed)
  } catch (error) {
    failed(error)
  }
}
