/** Which counters of a session have been received: a sliding window over the newest (RFC 6479). */

const wordBits = 32
const words = 256
/** Counters behind the newest that are still accepted. */
const windowSize = (words - 1) * wordBits

/** The window of one session. */
export class ReplayWindow {
  readonly #bits = new Uint32Array(words)
  #newest = -1

  /** Records an authentic counter; false when it was received before or is too old. */
  accept(counter: number): boolean {
    const word = Math.floor(counter / wordBits)
    if (counter > this.#newest) {
      const newestWord = this.#newest < 0 ? -1 : Math.floor(this.#newest / wordBits)
      const skipped = Math.min(word - newestWord, words)
      for (let step = 1; step <= skipped; step++) this.#bits[(newestWord + step) % words] = 0
      this.#newest = counter
    } else if (this.#newest - counter > windowSize) return false
    const at = word % words
    const bit = 1 << (counter % wordBits)
    const bits = this.#bits[at] ?? 0
    if ((bits & bit) !== 0) return false
    this.#bits[at] = bits | bit
    return true
  }
}
