/** Waits so many milliseconds, or until the signal. */
export async function rest(milliseconds: number, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const stop = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', stop)
      resolve()
    }
    const timer = setTimeout(stop, milliseconds)
    signal.addEventListener('abort', stop, { once: true })
    if (signal.aborted) stop()
  })
}
