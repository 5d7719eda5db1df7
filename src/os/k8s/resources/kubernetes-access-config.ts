import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** Which pods may use the machine API. */
export const KubernetesAccessConfig = defineResource({
  type: 'KubernetesAccessConfigs.cluster.talos.dev',
  namespace: 'config',
  displayType: 'KubernetesAccessConfig',
  spec: v.object({
    enabled: v.boolean(),
    allowedAPIRoles: v.optional(v.array(v.string()), []),
    allowedKubernetesNamespaces: v.optional(v.array(v.string()), []),
  }),
})
