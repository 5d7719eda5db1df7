import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** A taint this node should have. */
export const NodeTaintSpec = defineResource({
  type: 'NodeTaintSpecs.k8s.talos.dev',
  namespace: 'k8s',
  displayType: 'NodeTaintSpec',
  sensitive: true,
  columns: { Effect: '{.effect}', Value: '{.value}' },
  spec: v.object({ key: v.string(), effect: v.string(), value: v.string() }),
})
