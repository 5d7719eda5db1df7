import type { Store } from '../../cosi/store.ts'
import { configOf } from '../config/public.ts'
import { MachineConfig } from '../config/resources/machine-config.ts'

/** Whether the configuration in force requests verbose output on the console. */
export const isVerbose = (store: Pick<Store, 'get'>): boolean => configOf(store.get(MachineConfig, 'v1alpha1'))?.v1alpha1?.debug === true
