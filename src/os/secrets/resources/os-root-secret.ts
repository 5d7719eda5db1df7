import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { certificate, certificateAndKey, ip } from '../../values.ts'

/** The authority of the machine API and the token for joining. */
export const OSRootSecret = defineResource({
  type: 'OSRootSecrets.secrets.talos.dev',
  namespace: 'secrets',
  displayType: 'OSRootSecret',
  sensitive: true,
  spec: v.object({
    issuingCA: v.optional(certificateAndKey),
    acceptedCAs: v.optional(v.array(certificate)),
    certSANIPs: v.optional(v.array(ip), []),
    certSANDNSNames: v.optional(v.array(v.string()), []),
    token: v.string(),
  }),
})
