import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { certificate, certificateAndKey } from '../../values.ts'

/** Certificates of trustd. */
export const TrustdCertificate = defineResource({
  type: 'TrustdCertificates.secrets.talos.dev',
  namespace: 'secrets',
  displayType: 'TrustdCertificate',
  sensitive: true,
  spec: v.object({ acceptedCAs: v.optional(v.array(certificate)), server: v.optional(certificateAndKey) }),
})
