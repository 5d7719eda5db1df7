import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** Something that is wrong with this node, and what to do. */
export const Diagnostic = defineResource({
  type: 'Diagnostics.runtime.talos.dev',
  namespace: 'runtime',
  displayType: 'Diagnostic',
  columns: { Message: '{.message}' },
  spec: v.object({ message: v.string(), details: v.optional(v.array(v.string()), []) }),
})
