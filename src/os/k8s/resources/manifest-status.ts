import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** Which manifests have been applied. */
export const ManifestStatus = defineResource({
  type: 'ManifestStatuses.kubernetes.talos.dev',
  namespace: 'controlplane',
  displayType: 'ManifestStatus',
  spec: v.object({ manifestsApplied: v.optional(v.array(v.string()), []) }),
})
