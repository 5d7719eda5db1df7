import type { StoreView } from '../../supervise/definition.ts'
import { EtcFileStatus } from '../files/resources/etc-file.ts'

/** The configuration of the pods' daemon that changes while the machine runs. */
export const configFile = 'cri/conf.d/cri.toml'

const read = new WeakMap<StoreView, string>()

const versionOf = (store: StoreView): string | undefined => store.get(EtcFileStatus, configFile)?.spec.specVersion

/** Remembers which configuration the daemon is about to read. */
export function noteConfigRead(store: StoreView): void {
  const version = versionOf(store)
  if (version !== undefined) read.set(store, version)
}

/** Whether the configuration is another than the one the daemon has read. */
export function configChanged(store: StoreView): boolean {
  const before = read.get(store)
  return before !== undefined && before !== versionOf(store)
}
