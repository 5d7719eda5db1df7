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
