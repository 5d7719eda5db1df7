import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** How node addresses are ordered. */
export const NodeAddressSortAlgorithm = defineResource({
  type: 'NodeAddressSortAlgorithms.net.talos.dev',
  namespace: 'network',
  displayType: 'NodeAddressSortAlgorithm',
  columns: { Algorithm: '{.algorithm}' },
  spec: v.object({ algorithm: v.string() }),
})
