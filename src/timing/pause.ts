import { timerDelay } from './timer.ts'

/** Waits this many milliseconds (25 days at most), or until the signal is aborted; never rejects. */
export function pause(milliseconds: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.resolve()
  const { promise, resolve } = Promise.withResolvers<void>()
  const done = () => resolve()
  const timer = setTimeout(done, timerDelay(milliseconds))
  signal?.addEventListener('abort', done, { once: true })
  return promise.finally(() => {
    clearTimeout(timer)
    signal?.removeEventListener('abort', done)
  })
}
