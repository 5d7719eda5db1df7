import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** Says that META has been read. */
export const MetaLoad = defineResource({
  type: 'MetaLoads.runtime.talos.dev',
  namespace: 'runtime',
  displayType: 'MetaLoad',
  columns: { Done: '{.done}' },
  spec: v.object({ done: v.boolean() }),
})
