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

/** A desired label of this node. */
export const NodeLabelSpec = defineResource({
  type: 'NodeLabelSpecs.k8s.talos.dev',
  namespace: 'k8s',
  displayType: 'NodeLabelSpec',
  sensitive: true,
  columns: { Value: '{.value}' },
  spec: v.object({ key: v.string(), value: v.string() }),
})

/** A desired annotation of this node. */
export const NodeAnnotationSpec = defineResource({
  type: 'NodeAnnotationSpecs.k8s.talos.dev',
  namespace: 'k8s',
  displayType: 'NodeAnnotationSpec',
  sensitive: true,
  columns: { Value: '{.value}' },
  spec: v.object({ key: v.string(), value: v.string() }),
})

/** A desired taint of this node. */
export const NodeTaintSpec = defineResource({
  type: 'NodeTaintSpecs.k8s.talos.dev',
  namespace: 'k8s',
  displayType: 'NodeTaintSpec',
  sensitive: true,
  columns: { Effect: '{.effect}', Value: '{.value}' },
  spec: v.object({ key: v.string(), effect: v.string(), value: v.string() }),
})

/** Requests that this node is cordoned. */
export const NodeCordonedSpec = defineResource({
  type: 'NodeCordonedSpecs.k8s.talos.dev',
  namespace: 'k8s',
  displayType: 'NodeCordonedSpec',
  sensitive: true,
  spec: v.object({}),
})
