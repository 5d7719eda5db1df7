import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { urlParts } from '../../url.ts'
import { certificate } from '../../values.ts'

/** What the kubelet needs to join: endpoint, authority, bootstrap token. */
export const KubeletSecret = defineResource({
  type: 'KubeletSecrets.secrets.talos.dev',
  namespace: 'secrets',
  displayType: 'KubeletSecret',
  sensitive: true,
  spec: v.object({
    endpoint: v.optional(urlParts),
    acceptedCAs: v.optional(v.array(certificate)),
    bootstrapTokenID: v.string(),
    bootstrapTokenSecret: v.string(),
  }),
})
