import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** States that the machine is being reset. */
export const MachineResetSignal = defineResource({
  type: 'MachineResetSignals.runtime.talos.dev',
  namespace: 'runtime',
  displayType: 'MachineResetSignal',
  spec: v.object({}),
})
