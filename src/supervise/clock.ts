/** Time as the supervisor sees it; a test brings its own. */
export interface Clock {
  now(): Date
  /** Resolves after `ms`, or as soon as the signal is aborted; never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

/** The machine's own clock. */
export const systemClock: Clock = {
  now: () => new Date(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve()
      const done = () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', done)
        resolve()
      }
      const timer = setTimeout(done, ms)
      signal?.addEventListener('abort', done)
    }),
}
