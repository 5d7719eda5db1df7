import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** A value kept in the META partition. */
export const MetaKey = defineResource({
  type: 'MetaKeys.runtime.talos.dev',
  namespace: 'runtime',
  displayType: 'MetaKey',
  aliases: ['meta'],
  columns: { Value: '{.value}' },
  spec: v.object({ value: v.string() }),
})

/** States that META has been read. */
export const MetaLoad = defineResource({
  type: 'MetaLoads.runtime.talos.dev',
  namespace: 'runtime',
  displayType: 'MetaLoad',
  columns: { Done: '{.done}' },
  spec: v.object({ done: v.boolean() }),
})
