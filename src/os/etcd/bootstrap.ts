import type { SnapshotHashResult } from '../../wire/etcd/snapshot-hash.ts'

/** How the cluster starts. */
export interface BootstrapOrder {
  /** Start with the uploaded snapshot instead of an empty database. */
  recover: boolean
  /** Do not verify the snapshot's checksum: it was copied from a data folder. */
  skipHashCheck: boolean
}

/** The operator's order to bootstrap a cluster here, kept until etcd has started. */
export class Bootstrap {
  /** What the hash of the snapshot shows that was uploaded last; undefined when none was uploaded since init started. */
  uploaded?: SnapshotHashResult | undefined
  #order?: BootstrapOrder | undefined
  #ordered = () => {}

  get order(): BootstrapOrder | undefined {
    return this.#order
  }

  give(order: BootstrapOrder): void {
    this.#order = order
    this.#ordered()
  }

  done(): void {
    this.#order = undefined
  }

  /** Resolves when there is an order, or after so many milliseconds. Rejects with the signal's reason. */
  wait(milliseconds: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason)
      if (this.#order) return resolve()
      const end = (act: () => void) => () => {
        clearTimeout(timer)
        signal.removeEventListener('abort', aborted)
        this.#ordered = () => {}
        act()
      }
      const aborted = end(() => reject(signal.reason))
      const timer = setTimeout(end(resolve), milliseconds)
      this.#ordered = end(resolve)
      signal.addEventListener('abort', aborted)
    })
  }
}
