import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { certificate, certificateAndKey } from '../../values.ts'

/** Certificates of the machine API: server, client and accepted authorities. */
export const ApiCertificate = defineResource({
  type: 'ApiCertificates.secrets.talos.dev',
  namespace: 'secrets',
  displayType: 'ApiCertificate',
  sensitive: true,
  spec: v.object({
    acceptedCAs: v.optional(v.array(certificate)),
    client: v.optional(certificateAndKey),
    server: v.optional(certificateAndKey),
    skipVerifyingClientCert: v.boolean(),
  }),
})
