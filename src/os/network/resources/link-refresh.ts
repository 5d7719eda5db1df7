import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { integer } from '../../values.ts'

/** Asks for links of the kind it is called after to be read again: of some changes the kernel tells nobody. */
export const LinkRefresh = defineResource({
  type: 'LinkRefreshes.net.talos.dev',
  namespace: 'network',
  displayType: 'LinkRefresh',
  spec: v.object({ generation: integer }),
})
