import type { StoreView } from '../../supervise/definition.ts'
import { EtcFileStatus } from '../files/resources/etc-file.ts'

/** The part of the pods' daemon's configuration that changes while the machine runs. */
export const configFile = 'cri/conf.d/cri.toml'

const versionOf = (store: StoreView): string | undefined => store.get(EtcFileStatus, configFile)?.spec.specVersion

/** The version of the configuration that the pods' daemon runs with. */
export class ConfigRead {
  #version?: string

  /** Records the configuration that the daemon is about to read. */
  note(store: StoreView): void {
    const version = versionOf(store)
    if (version !== undefined) this.#version = version
  }

  /** Whether the configuration differs from the one that the daemon has read. */
  isStale(store: StoreView): boolean {
    return this.#version !== undefined && this.#version !== versionOf(store)
  }
}
