import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** The cluster's own name and id. */
export const Info = defineResource({
  type: 'Infos.cluster.talos.dev',
  namespace: 'cluster',
  displayType: 'Info',
  columns: { 'Cluster ID': '{.clusterId}', 'Cluster Name': '{.clusterName}' },
  spec: v.object({ clusterId: v.string(), clusterName: v.string() }),
})
