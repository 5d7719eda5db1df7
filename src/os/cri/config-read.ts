import type { StoreView } from '../../supervise/definition.ts'
import { certificateBundle, EtcFileStatus } from '../files/resources/etc-file.ts'
import { operatorEnvironment } from './service-environment.ts'

/** What the pods' daemon reads only when it starts, and what changes while the machine runs. */
const files = ['cri/conf.d/cri.toml', certificateBundle]

/** Undefined until all files are written. */
function versionOf(store: StoreView): string | undefined {
  const versions = files.map((id) => store.get(EtcFileStatus, id)?.spec.specVersion)
  return versions.includes(undefined) ? undefined : JSON.stringify([versions, operatorEnvironment(store)])
}

/** The version of the configuration, the trusted authorities and the variables that the pods' daemon runs with. */
export class ConfigRead {
  #version?: string

  /** Records what the daemon is about to read. */
  note(store: StoreView): void {
    const version = versionOf(store)
    if (version !== undefined) this.#version = version
  }

  /** Whether something differs from what the daemon has read. */
  isStale(store: StoreView): boolean {
    return this.#version !== undefined && this.#version !== versionOf(store)
  }
}
