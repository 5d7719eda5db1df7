/** Work that must not overlap, as changes of one disk or of one list: each begins when all before it have ended. */
export class SerialQueue {
  #last: Promise<unknown> = Promise.resolve()

  /** Runs work after all that came before, whether or not that succeeded. Its error is the caller's alone. */
  run<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work)
    this.#last = result.catch(() => {})
    return result
  }
}
