import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { cidr } from '../../values.ts'

/** Addresses of the node, selected and sorted for one use. */
export const NodeAddress = defineResource({
  type: 'NodeAddresses.net.talos.dev',
  namespace: 'network',
  displayType: 'NodeAddress',
  columns: { Addresses: '{.addresses}', SortAlgorithm: '{.sortAlgorithm}' },
  spec: v.object({ addresses: v.optional(v.array(cidr), []), sortAlgorithm: v.string() }),
})
