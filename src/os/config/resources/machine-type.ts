import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** Whether this is a control plane node or a worker. */
export const MachineType = defineResource({
  type: 'MachineTypes.config.talos.dev',
  namespace: 'config',
  displayType: 'MachineType',
  columns: { Type: '{@}' },
  spec: v.picklist(['init', 'controlplane', 'worker']),
})
