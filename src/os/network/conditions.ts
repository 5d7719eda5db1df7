import type { StoreView } from '../../supervise/definition.ts'
import { TimeStatus } from '../time/resources/time-status.ts'
import { NetworkStatus } from './resources/network-status.ts'

/** What a service may need of the network. */
export type NetworkNeed = 'address' | 'connectivity' | 'hostname' | 'etcfiles'

const keys = { address: 'addressReady', connectivity: 'connectivityReady', hostname: 'hostnameReady', etcfiles: 'etcFilesReady' } as const

/** The condition's name when some of the needs are not met. */
export function networkConditions(store: StoreView, needs: readonly NetworkNeed[]): string[] {
  const status = store.get(NetworkStatus, 'status')?.spec
  return needs.every((need) => status?.[keys[need]]) ? [] : ['network']
}

/** The condition's name while the clock is not known to be right. */
export function timeConditions(store: StoreView): string[] {
  return store.get(TimeStatus, 'node')?.spec.synced ? [] : ['time sync']
}
