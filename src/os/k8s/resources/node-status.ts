import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { cidr } from '../../values.ts'

/** This node as the API server sees it. */
export const NodeStatus = defineResource({
  type: 'NodeStatuses.kubernetes.talos.dev',
  namespace: 'k8s',
  displayType: 'NodeStatus',
  columns: { Ready: '{.nodeReady}', Unschedulable: '{.unschedulable}' },
  spec: v.object({
    nodename: v.string(),
    nodeReady: v.boolean(),
    unschedulable: v.boolean(),
    labels: v.optional(v.record(v.string(), v.string()), {}),
    annotations: v.optional(v.record(v.string(), v.string()), {}),
    podCIDRs: v.optional(v.array(cidr), []),
  }),
})
