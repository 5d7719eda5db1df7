import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { hostPort, ip } from '../../values.ts'

/** Whether and where the host's resolver listens. */
export const HostDNSConfig = defineResource({
  type: 'HostDNSConfigs.net.talos.dev',
  namespace: 'network',
  displayType: 'HostDNSConfig',
  columns: { Enabled: '{.enabled}' },
  spec: v.object({
    enabled: v.boolean(),
    listenAddresses: v.optional(v.array(hostPort)),
    serviceHostDNSAddress: v.optional(ip),
    resolveMemberNames: v.optional(v.boolean()),
  }),
})
