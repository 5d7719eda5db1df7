import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** A machine configuration, as one text of YAML documents. */
export const MachineConfig = defineResource({
  type: 'MachineConfigs.config.talos.dev',
  namespace: 'config',
  displayType: 'MachineConfig',
  sensitive: true,
  // Clients that edit or patch treat the spec as one YAML string only if this is set.
  annotations: { 'talos.dev/yaml-spec': '1' },
  spec: v.string(),
})
