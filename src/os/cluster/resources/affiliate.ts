import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { cidr, hostPort, integer, ip } from '../../values.ts'

/** A machine that may be a member of the cluster, as discovery reports it. */
export const Affiliate = defineResource({
  type: 'Affiliates.cluster.talos.dev',
  namespace: 'cluster',
  displayType: 'Affiliate',
  columns: { Hostname: '{.hostname}', 'Machine Type': '{.machineType}', Addresses: '{.addresses}' },
  spec: v.object({
    nodeId: v.string(),
    addresses: v.optional(v.array(ip), []),
    hostname: v.string(),
    nodename: v.optional(v.string()),
    operatingSystem: v.string(),
    machineType: v.picklist(['unknown', 'init', 'controlplane', 'worker']),
    kubespan: v.optional(
      v.object({
        publicKey: v.string(),
        address: ip,
        additionalAddresses: v.optional(v.array(cidr), []),
        endpoints: v.optional(v.array(hostPort), []),
        excludeAdvertisedNetworks: v.optional(v.array(cidr), []),
      }),
    ),
    controlPlane: v.optional(v.object({ port: integer })),
  }),
})
