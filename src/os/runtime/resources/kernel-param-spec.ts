import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** A kernel parameter the configuration sets. */
export const KernelParamSpec = defineResource({
  type: 'KernelParamSpecs.runtime.talos.dev',
  namespace: 'runtime',
  displayType: 'KernelParamSpec',
  spec: v.object({ value: v.string(), ignoreErrors: v.boolean() }),
})
