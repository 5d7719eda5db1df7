/** Watches the members of etcd, and notes every list of which less than a majority is left. */
import { majorityOf } from '../../src/os/etcd/majority.ts'
import type { ListedMember } from './etcd-tools.ts'

/** Milliseconds between two lists. */
const interval = 500

/** What the lists of members showed since `start`. */
export class Memberships {
  /** Lists that were seen. */
  seen = 0
  /** Lists of which too few were left, as text. */
  readonly without: string[] = []
  readonly #list: () => Promise<ListedMember[]>
  readonly #lost = new Set<string>()
  #running = false
  #watching = Promise.resolve()

  constructor(list: () => Promise<ListedMember[]>) {
    this.#list = list
  }

  /** From now on the member with this id does not count: 16 hexadecimal digits. */
  lost(id: string): void {
    this.#lost.add(id)
  }

  start(): void {
    this.#running = true
    this.#watching = this.#watch()
  }

  stop(): Promise<void> {
    this.#running = false
    return this.#watching
  }

  async #watch(): Promise<void> {
    while (this.#running) {
      try {
        this.#note(await this.#list())
      } catch {
        // An election: the list is read again.
      }
      await Bun.sleep(interval)
    }
  }

  #note(members: readonly ListedMember[]): void {
    this.seen++
    const voting = members.filter(({ isLearner }) => isLearner !== true)
    const left = voting.filter(({ ID }) => !this.#lost.has(ID))
    if (left.length < majorityOf(voting.length))
      this.without.push(`${left.length} of ${voting.map(({ name, ID }) => name || ID).join(', ')}`)
  }
}
