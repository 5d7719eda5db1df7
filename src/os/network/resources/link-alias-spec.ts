import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** A desired alias of a link. */
export const LinkAliasSpec = defineResource({
  type: 'LinkAliasSpecs.net.talos.dev',
  namespace: 'network',
  displayType: 'LinkAliasSpec',
  columns: { Alias: '{.alias}' },
  spec: v.object({ alias: v.string() }),
})
