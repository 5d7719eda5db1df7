import type { StoreView } from '../../supervise/definition.ts'
import { EtcFileStatus } from '../files/resources/etc-file.ts'

/** The part of the pods' daemon's configuration that changes while the machine runs. */
export const configFile = 'cri/conf.d/cri.toml'

const read = new WeakMap<StoreView, string>()

const versionOf = (store: StoreView): string | undefined => store.get(EtcFileStatus, configFile)?.spec.specVersion

/** Records the configuration that the daemon is about to read. */
export function noteConfigRead(store: StoreView): void {
  const version = versionOf(store)
  if (version !== undefined) read.set(store, version)
}

/** Whether the configuration differs from the one that the daemon has read. */
export function configChanged(store: StoreView): boolean {
  const before = read.get(store)
  return before !== undefined && before !== versionOf(store)
}
