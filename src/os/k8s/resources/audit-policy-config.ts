import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** What the API server writes into its audit log. */
export const AuditPolicyConfig = defineResource({
  type: 'AuditPolicyConfigs.kubernetes.talos.dev',
  namespace: 'controlplane',
  displayType: 'AuditPolicyConfig',
  sensitive: true,
  spec: v.object({ config: v.optional(v.record(v.string(), v.unknown()), {}) }),
})
