/** Retries without their seconds of delay: for tests of what happens after a failure, with real sockets and so real time. */
import { afterAll, beforeAll } from 'bun:test'

/**
 * Until the end of the file, timers of `from` to 20,000 milliseconds fire after a hundredth of their time; shorter and longer
 * ones, such as regular checks a minute apart, stay as they are.
 */
export function shortenDelays(from = 1_000): void {
  const real = globalThis.setTimeout
  const shortened = (run: () => void, delay = 0, ...rest: []) => real(run, delay >= from && delay <= 20_000 ? delay / 100 : delay, ...rest)
  beforeAll(() => {
    globalThis.setTimeout = shortened as typeof setTimeout
  })
  afterAll(() => {
    globalThis.setTimeout = real
  })
}
