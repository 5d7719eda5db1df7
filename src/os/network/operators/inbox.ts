import type { Clock } from './operator.ts'

const most = 64

/** Queue of received messages. When it is full, the oldest are dropped. */
export class Inbox<T> {
  readonly #waiting: T[] = []
  #taker?: () => void

  put(message: T): void {
    this.#waiting.push(message)
    if (this.#waiting.length > most) this.#waiting.shift()
    this.#taker?.()
  }

  /** The first matching message; others are dropped. Undefined on timeout. */
  async take(fits: (message: T) => boolean, milliseconds: number, clock: Clock, signal: AbortSignal): Promise<T | undefined> {
    const end = clock.now() + milliseconds
    for (;;) {
      for (let message = this.#waiting.shift(); message !== undefined; message = this.#waiting.shift()) if (fits(message)) return message
      const left = end - clock.now()
      if (left <= 0 || signal.aborted) return undefined
      const woken = new AbortController()
      const wake = () => woken.abort()
      this.#taker = wake
      signal.addEventListener('abort', wake, { once: true })
      await clock.sleep(left, woken.signal)
      signal.removeEventListener('abort', wake)
    }
  }
}
