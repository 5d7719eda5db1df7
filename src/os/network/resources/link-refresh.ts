import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { integer } from '../../values.ts'

/** Asks for the links to be read again. */
export const LinkRefresh = defineResource({
  type: 'LinkRefreshes.net.talos.dev',
  namespace: 'network',
  displayType: 'LinkRefresh',
  spec: v.object({ generation: integer }),
})
