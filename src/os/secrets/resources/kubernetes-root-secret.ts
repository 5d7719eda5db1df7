import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { urlParts } from '../../url.ts'
import { certificate, certificateAndKey, ip, privateKey } from '../../values.ts'

/** Authorities, keys and tokens of Kubernetes. */
export const KubernetesRootSecret = defineResource({
  type: 'KubernetesRootSecrets.secrets.talos.dev',
  namespace: 'secrets',
  displayType: 'KubernetesRootSecret',
  sensitive: true,
  spec: v.object({
    name: v.string(),
    endpoint: v.optional(urlParts),
    local_endpoint: v.optional(urlParts),
    certSANs: v.optional(v.array(v.string()), []),
    apiServerIPs: v.optional(v.array(ip), []),
    dnsDomain: v.string(),
    issuingCA: v.optional(certificateAndKey),
    acceptedCAs: v.optional(v.array(certificate)),
    serviceAccount: v.optional(privateKey),
    aggregatorCA: v.optional(certificateAndKey),
    aesCBCEncryptionSecret: v.string(),
    bootstrapTokenID: v.string(),
    bootstrapTokenSecret: v.string(),
    secretboxEncryptionSecret: v.string(),
  }),
})
