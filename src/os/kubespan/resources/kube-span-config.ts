import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { cidr, hostPort, integer } from '../../values.ts'

/** Settings of the WireGuard mesh. */
export const KubeSpanConfig = defineResource({
  type: 'KubeSpanConfigs.kubespan.talos.dev',
  namespace: 'config',
  displayType: 'KubeSpanConfig',
  sensitive: true,
  spec: v.object({
    enabled: v.boolean(),
    clusterId: v.string(),
    sharedSecret: v.string(),
    forceRouting: v.boolean(),
    advertiseKubernetesNetworks: v.boolean(),
    mtu: v.optional(integer),
    endpointFilters: v.optional(v.array(v.string())),
    harvestExtraEndpoints: v.boolean(),
    extraEndpoints: v.optional(v.array(hostPort)),
    excludeAdvertisedNetworks: v.optional(v.array(cidr)),
  }),
})
