import type { Store } from '../../cosi/store.ts'
import { declared } from '../config/declared.ts'
import { MachineConfig } from '../config/resources/machine-config.ts'

/** PEM of the authorities that the configuration adds to those the world trusts; empty when it adds none. */
export const trustedRoots = (store: Pick<Store, 'get'>): string =>
  (declared(store.get(MachineConfig, 'v1alpha1'))?.documents ?? [])
    .filter(({ kind }) => kind === 'TrustedRootsConfig')
    .map(({ certificates }) => certificates)
    .join('\n')
