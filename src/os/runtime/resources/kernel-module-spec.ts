import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** A kernel module that should be loaded. */
export const KernelModuleSpec = defineResource({
  type: 'KernelModuleSpecs.runtime.talos.dev',
  namespace: 'runtime',
  displayType: 'KernelModuleSpec',
  spec: v.object({ string: v.string(), parameters: v.optional(v.array(v.string()), []) }),
})
