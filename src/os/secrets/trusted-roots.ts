import type { Store } from '../../cosi/store.ts'
import { declared, findAll } from '../config/public.ts'
import { MachineConfig } from '../config/resources/machine-config.ts'
import { TrustedRootsConfig } from './documents/trusted-roots.ts'

/** PEM of the authorities that the configuration adds to the public ones; empty when it adds none. */
export const trustedRoots = (store: Pick<Store, 'get'>): string =>
  findAll(declared(store.get(MachineConfig, 'v1alpha1')), TrustedRootsConfig)
    .map(({ certificates }) => certificates)
    .join('\n')
