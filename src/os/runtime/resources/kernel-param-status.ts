import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** A kernel parameter as it was set, or why not. */
export const KernelParamStatus = defineResource({
  type: 'KernelParamStatuses.runtime.talos.dev',
  namespace: 'runtime',
  displayType: 'KernelParamStatus',
  aliases: ['sysctls', 'kernelparameters', 'kernelparams'],
  columns: { Current: '{.current}', Default: '{.default}', Unsupported: '{.unsupported}' },
  spec: v.object({ current: v.string(), default: v.string(), unsupported: v.boolean() }),
})
