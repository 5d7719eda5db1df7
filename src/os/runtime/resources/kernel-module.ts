import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { integer } from '../../values.ts'

/** A desired kernel module. */
export const KernelModuleSpec = defineResource({
  type: 'KernelModuleSpecs.runtime.talos.dev',
  namespace: 'runtime',
  displayType: 'KernelModuleSpec',
  spec: v.object({ string: v.string(), parameters: v.optional(v.array(v.string()), []) }),
})

/** A kernel module that is loaded. */
export const LoadedKernelModule = defineResource({
  type: 'LoadedKernelModules.runtime.talos.dev',
  namespace: 'runtime',
  displayType: 'LoadedKernelModule',
  aliases: ['module', 'modules'],
  columns: { State: '{.state}' },
  spec: v.object({
    size: integer,
    referenceCount: integer,
    dependencies: v.optional(v.array(v.string())),
    state: v.string(),
    address: v.string(),
  }),
})
