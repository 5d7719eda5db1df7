import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { integer } from '../../values.ts'

/** Asks for the devices to be probed again. */
export const DiscoveryRefreshRequest = defineResource({
  type: 'DiscoveryRefreshRequests.block.talos.dev',
  namespace: 'runtime',
  displayType: 'DiscoveryRefreshRequest',
  columns: { Request: '{.request}' },
  spec: v.object({ request: integer }),
})

/** The last request for probing that was served. */
export const DiscoveryRefreshStatus = defineResource({
  type: 'DiscoveryRefreshStatuses.block.talos.dev',
  namespace: 'runtime',
  displayType: 'DiscoveryRefreshStatus',
  columns: { Request: '{.request}' },
  spec: v.object({ request: integer }),
})
