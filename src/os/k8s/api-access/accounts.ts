import type { Clock } from '../../../cosi/clock.ts'
import type { KubeObject } from '../../../kube/object.ts'
import { type Account, accountOf } from './service-account.ts'

/** The most accounts that are served: each of them takes a request a minute. */
export const mostAccounts = 1_000

/** The accounts of a cluster, and which of them have changed since they were last looked at. */
export class Accounts {
  readonly #known = new Map<string, Account>()
  readonly #due = new Set<string>()
  #arrived = Promise.withResolvers<void>()
  #full = false

  /** `tooMany` is called for the first account that is beyond the limit. */
  constructor(readonly tooMany: (key: string) => void) {}

  /** These are all there are. */
  listed(objects: readonly KubeObject[]): void {
    this.#known.clear()
    for (const object of objects) this.changed(object)
  }

  changed(object: KubeObject, deleted = false): void {
    const account = accountOf(object)
    const key = `${account.namespace}/${account.name}`
    if (deleted) this.#known.delete(key)
    else if (this.#known.has(key) || this.#known.size < mostAccounts) {
      this.#known.set(key, account)
      this.#due.add(key)
      this.#arrived.resolve()
    } else if (!this.#full) {
      this.#full = true
      this.tooMany(key)
    }
  }

  get(key: string): Account | undefined {
    return this.#known.get(key)
  }

  /** The keys of all accounts. */
  keys(): Iterable<string> {
    return this.#known.keys()
  }

  /** The keys of the accounts to look at, as soon as there are any; none after `limit` milliseconds or when the signal is aborted. */
  async next(limit: number, clock: Clock, signal: AbortSignal): Promise<string[]> {
    const waiting = new AbortController()
    await Promise.race([this.#arrived.promise, clock.sleep(limit, AbortSignal.any([signal, waiting.signal]))])
    waiting.abort()
    this.#arrived = Promise.withResolvers()
    const keys = [...this.#due]
    this.#due.clear()
    return keys
  }
}
