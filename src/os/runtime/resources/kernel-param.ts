import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** A kernel parameter the configuration sets. */
export const KernelParamSpec = defineResource({
  type: 'KernelParamSpecs.runtime.talos.dev',
  namespace: 'runtime',
  displayType: 'KernelParamSpec',
  spec: v.object({ value: v.string(), ignoreErrors: v.boolean() }),
})

/** A kernel parameter the system sets by itself. */
export const KernelParamDefaultSpec = defineResource({
  type: 'KernelParamDefaultSpecs.runtime.talos.dev',
  namespace: 'runtime',
  displayType: 'KernelParamDefaultSpec',
  spec: v.object({ value: v.string(), ignoreErrors: v.boolean() }),
})

/** A kernel parameter as it was set, or why not. */
export const KernelParamStatus = defineResource({
  type: 'KernelParamStatuses.runtime.talos.dev',
  namespace: 'runtime',
  displayType: 'KernelParamStatus',
  aliases: ['sysctls', 'kernelparameters', 'kernelparams'],
  columns: { Current: '{.current}', Default: '{.default}', Unsupported: '{.unsupported}' },
  spec: v.object({ current: v.string(), default: v.string(), unsupported: v.boolean() }),
})
