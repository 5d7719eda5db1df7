import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** Admission plugins of the API server and their configuration. */
export const AdmissionControlConfig = defineResource({
  type: 'AdmissionControlConfigs.kubernetes.talos.dev',
  namespace: 'controlplane',
  displayType: 'AdmissionControlConfig',
  spec: v.object({
    config: v.optional(v.array(v.object({ name: v.string(), configuration: v.optional(v.record(v.string(), v.unknown()), {}) })), []),
  }),
})
