import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { certificate, certificateAndKey, ip, privateKey } from '../../values.ts'

/** Authorities, keys and tokens of Kubernetes. */
export const KubernetesRootSecret = defineResource({
  type: 'KubernetesRootSecrets.secrets.talos.dev',
  namespace: 'secrets',
  displayType: 'KubernetesRootSecret',
  sensitive: true,
  spec: v.object({
    name: v.string(),
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
    local_endpoint: v.optional(
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
