import { timerDelay } from './timer.ts'

/**
 * Resolves or rejects as `answer` does, or rejects with the error of `late` when that takes longer than so many milliseconds.
 * Whatever `answer` waits for continues; the caller ends it.
 */
export function within<T>(answer: PromiseLike<T>, milliseconds: number, late: () => Error): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(late()), timerDelay(milliseconds))
  return Promise.race([answer, promise]).finally(() => clearTimeout(timer))
}
