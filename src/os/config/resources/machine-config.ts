import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** A machine configuration, as one text of YAML documents. */
export const MachineConfig = defineResource({
  type: 'MachineConfigs.config.talos.dev',
  namespace: 'config',
  displayType: 'MachineConfig',
  sensitive: true,
  spec: v.string(),
})
