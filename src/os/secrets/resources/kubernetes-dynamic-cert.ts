import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { certificateAndKey } from '../../values.ts'

/** Certificates of the API server and of its clients. */
export const KubernetesDynamicCert = defineResource({
  type: 'KubernetesDynamicCerts.secrets.talos.dev',
  namespace: 'secrets',
  displayType: 'KubernetesDynamicCert',
  sensitive: true,
  spec: v.object({
    apiServer: v.optional(certificateAndKey),
    apiServerKubeletClient: v.optional(certificateAndKey),
    frontProxy: v.optional(certificateAndKey),
  }),
})
