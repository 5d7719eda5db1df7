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

/** Which addresses belong to a set of node addresses. */
export const NodeAddressFilter = defineResource({
  type: 'NodeAddressFilters.net.talos.dev',
  namespace: 'network',
  displayType: 'NodeAddressFilter',
  columns: { 'Include Subnets': '{.includeSubnets}', 'Exclude Subnets': '{.excludeSubnets}' },
  spec: v.object({ includeSubnets: v.optional(v.array(cidr), []), excludeSubnets: v.optional(v.array(cidr), []) }),
})

/** How node addresses are ordered. */
export const NodeAddressSortAlgorithm = defineResource({
  type: 'NodeAddressSortAlgorithms.net.talos.dev',
  namespace: 'network',
  displayType: 'NodeAddressSortAlgorithm',
  columns: { Algorithm: '{.algorithm}' },
  spec: v.object({ algorithm: v.string() }),
})
