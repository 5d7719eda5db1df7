/** Orders what changes the installed system of one machine: its boot loader is used by one at a time, and only one release is written. */
import { SerialQueue } from '../../timing/serial-queue.ts'

/** What writes a release. */
export type Writing = 'installation' | 'upgrade'

/** The order of changes of one machine; `init` owns it. */
export class SystemChanges {
  readonly #queue = new SerialQueue()
  #writing: Writing | undefined

  /** What writes a release now. */
  get writing(): Writing | undefined {
    return this.#writing
  }

  /** Runs `work` after all that came before, whether or not that succeeded. */
  inTurn<T>(work: () => Promise<T>): Promise<T> {
    return this.#queue.run(work)
  }

  /** Runs `work` while nothing else writes a release; throws the error of `refusal` when something does. */
  async exclusively<T>(writing: Writing, work: () => Promise<T>, refusal: (running: Writing) => Error): Promise<T> {
    if (this.#writing) throw refusal(this.#writing)
    this.#writing = writing
    try {
      return await work()
    } finally {
      this.#writing = undefined
    }
  }
}
