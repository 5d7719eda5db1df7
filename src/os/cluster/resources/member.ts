import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { integer, ip } from '../../values.ts'

/** A machine of the cluster. */
export const Member = defineResource({
  type: 'Members.cluster.talos.dev',
  namespace: 'cluster',
  displayType: 'Member',
  columns: { Hostname: '{.hostname}', 'Machine Type': '{.machineType}', OS: '{.operatingSystem}', Addresses: '{.addresses}' },
  spec: v.object({
    nodeId: v.string(),
    addresses: v.optional(v.array(ip), []),
    hostname: v.string(),
    machineType: v.picklist(['unknown', 'init', 'controlplane', 'worker']),
    operatingSystem: v.string(),
    controlPlane: v.optional(v.object({ port: integer })),
  }),
})
