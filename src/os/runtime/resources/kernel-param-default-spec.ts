import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** A kernel parameter the system sets by itself. */
export const KernelParamDefaultSpec = defineResource({
  type: 'KernelParamDefaultSpecs.runtime.talos.dev',
  namespace: 'runtime',
  displayType: 'KernelParamDefaultSpec',
  spec: v.object({ value: v.string(), ignoreErrors: v.boolean() }),
})
