import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** An annotation this node should have. */
export const NodeAnnotationSpec = defineResource({
  type: 'NodeAnnotationSpecs.k8s.talos.dev',
  namespace: 'k8s',
  displayType: 'NodeAnnotationSpec',
  sensitive: true,
  columns: { Value: '{.value}' },
  spec: v.object({ key: v.string(), value: v.string() }),
})
