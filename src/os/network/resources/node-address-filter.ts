import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { cidr } from '../../values.ts'

/** Which addresses belong to a set of node addresses. */
export const NodeAddressFilter = defineResource({
  type: 'NodeAddressFilters.net.talos.dev',
  namespace: 'network',
  displayType: 'NodeAddressFilter',
  columns: { 'Include Subnets': '{.includeSubnets}', 'Exclude Subnets': '{.excludeSubnets}' },
  spec: v.object({ includeSubnets: v.optional(v.array(cidr), []), excludeSubnets: v.optional(v.array(cidr), []) }),
})
