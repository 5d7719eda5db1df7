import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** Where the kernel's log is sent. */
export const KmsgLogConfig = defineResource({
  type: 'KmsgLogConfigs.runtime.talos.dev',
  namespace: 'runtime',
  displayType: 'KmsgLogConfig',
  spec: v.object({
    destinations: v.optional(
      v.array(
        v.object({
          scheme: v.string(),
          opaque: v.string(),
          user: v.optional(v.record(v.string(), v.unknown())),
          host: v.string(),
          path: v.string(),
          fragment: v.string(),
          rawquery: v.string(),
          rawpath: v.string(),
          rawfragment: v.string(),
          forcequery: v.boolean(),
          omithost: v.boolean(),
        }),
      ),
    ),
  }),
})
