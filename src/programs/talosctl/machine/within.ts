import { systemClock } from '../../../cosi/clock.ts'
import { messageOf } from '../../../wire/error-message.ts'
import { UsageError } from '../failure.ts'
import type { Io } from '../io.ts'

/** A failure that no further attempt would change. */
export class Final extends Error {
  override name = 'Final'
}

/**
 * Repeats an attempt until it succeeds. Throws its last error with `what` after so many milliseconds, and at once on Ctrl-C or
 * when it is Final or a UsageError.
 */
export async function within<T>(
  io: Pick<Io, 'pause' | 'signal'>,
  milliseconds: number,
  what: string,
  attempt: () => Promise<T>,
  interval = 250,
): Promise<T> {
  const deadline = systemClock.deadline(milliseconds)
  for (;;) {
    try {
      return await attempt()
    } catch (error) {
      if (io.signal.aborted || error instanceof Final || error instanceof UsageError) throw error
      if (deadline.over)
        throw new Error(`${what}: not so within ${Math.round(milliseconds / 1000)} s: ${messageOf(error).trim()}`, { cause: error })
    }
    await io.pause(Math.max(1, Math.min(interval, deadline.left)))
  }
}
