import { pause } from './pause.ts'

const never = new AbortController().signal

/** Runs an action that a start depends on, with retries: a mount or a socket may be busy for a moment. */
export async function withRetries<T>(
  what: string,
  act: () => T | Promise<T>,
  report: (problem: string, error: unknown) => void,
  delay = 200,
): Promise<T> {
  for (let left = 4; ; left--)
    try {
      return await act()
    } catch (error) {
      if (left === 0) throw error
      report(`${what} failed, will be retried`, error)
      await pause(delay, never)
    }
}
