import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { integer } from '../../values.ts'

/** The last request for probing that was served. */
export const DiscoveryRefreshStatus = defineResource({
  type: 'DiscoveryRefreshStatuses.block.talos.dev',
  namespace: 'runtime',
  displayType: 'DiscoveryRefreshStatus',
  columns: { Request: '{.request}' },
  spec: v.object({ request: integer }),
})
