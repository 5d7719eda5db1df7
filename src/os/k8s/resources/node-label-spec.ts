import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** A label this node should have. */
export const NodeLabelSpec = defineResource({
  type: 'NodeLabelSpecs.k8s.talos.dev',
  namespace: 'k8s',
  displayType: 'NodeLabelSpec',
  sensitive: true,
  columns: { Value: '{.value}' },
  spec: v.object({ key: v.string(), value: v.string() }),
})
