import type { StoreView } from '../../supervise/definition.ts'
import { TimeStatus } from '../time/resources/time-status.ts'
import { NetworkStatus } from './resources/network-status.ts'

/** Network conditions a service can require. */
export type NetworkNeed = 'address' | 'connectivity' | 'hostname' | 'etcfiles'

const keys = { address: 'addressReady', connectivity: 'connectivityReady', hostname: 'hostnameReady', etcfiles: 'etcFilesReady' } as const

/** Returns the condition's name while any of the needs is unmet. */
export function networkConditions(store: StoreView, needs: readonly NetworkNeed[]): string[] {
  const status = store.get(NetworkStatus, 'status')?.spec
  return needs.every((need) => status?.[keys[need]]) ? [] : ['network']
}

/** Returns the condition's name while the clock is not synchronized. */
export function timeConditions(store: StoreView): string[] {
  return store.get(TimeStatus, 'node')?.spec.synced ? [] : ['time sync']
}
