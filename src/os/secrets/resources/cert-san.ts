import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { ip } from '../../values.ts'

/** Names and addresses that server certificates must contain. */
export const CertSAN = defineResource({
  type: 'CertSANs.secrets.talos.dev',
  namespace: 'secrets',
  displayType: 'CertSAN',
  sensitive: true,
  spec: v.object({ ips: v.optional(v.array(ip), []), dnsNames: v.optional(v.array(v.string()), []), fqdn: v.string() }),
})
