import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { integer } from '../../values.ts'

/** Requests that devices be probed again. */
export const DiscoveryRefreshRequest = defineResource({
  type: 'DiscoveryRefreshRequests.block.talos.dev',
  namespace: 'runtime',
  displayType: 'DiscoveryRefreshRequest',
  columns: { Request: '{.request}' },
  spec: v.object({ request: integer }),
})

/** The last completed probing request. */
export const DiscoveryRefreshStatus = defineResource({
  type: 'DiscoveryRefreshStatuses.block.talos.dev',
  namespace: 'runtime',
  displayType: 'DiscoveryRefreshStatus',
  columns: { Request: '{.request}' },
  spec: v.object({ request: integer }),
})
