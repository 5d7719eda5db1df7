import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** Authorizers of the API server, in order. */
export const AuthorizationConfig = defineResource({
  type: 'AuthorizationConfigs.kubernetes.talos.dev',
  namespace: 'controlplane',
  displayType: 'AuthorizationConfig',
  sensitive: true,
  spec: v.object({
    image: v.string(),
    config: v.optional(
      v.array(v.object({ type: v.string(), name: v.string(), webhook: v.optional(v.record(v.string(), v.unknown()), {}) })),
      [],
    ),
  }),
})
