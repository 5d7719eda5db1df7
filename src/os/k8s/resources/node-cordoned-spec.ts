import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** That this node should take no new pods. */
export const NodeCordonedSpec = defineResource({
  type: 'NodeCordonedSpecs.k8s.talos.dev',
  namespace: 'k8s',
  displayType: 'NodeCordonedSpec',
  sensitive: true,
  spec: v.object({}),
})
