import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { certificate } from '../../values.ts'

/** What the kubelet needs to join: endpoint, authority, bootstrap token. */
export const KubeletSecret = defineResource({
  type: 'KubeletSecrets.secrets.talos.dev',
  namespace: 'secrets',
  displayType: 'KubeletSecret',
  sensitive: true,
  spec: v.object({
    endpoint: v.optional(
      v.object({
        scheme: v.string(),
        opaque: v.string(),
        user: v.optional(v.record(v.string(), v.unknown())),
        host: v.string(),
        path: v.string(),
        fragment: v.string(),
        rawquery: v.string(),
        rawpath: v.string(),
        rawfragment: v.string(),
        forcequery: v.boolean(),
        omithost: v.boolean(),
      }),
    ),
    acceptedCAs: v.optional(v.array(certificate)),
    bootstrapTokenID: v.string(),
    bootstrapTokenSecret: v.string(),
  }),
})
