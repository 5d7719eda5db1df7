import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { integer } from '../../values.ts'

/** Requests that links of the kind in its id be read again, for changes without a kernel notification. */
export const LinkRefresh = defineResource({
  type: 'LinkRefreshes.net.talos.dev',
  namespace: 'network',
  displayType: 'LinkRefresh',
  spec: v.object({ generation: integer }),
})
