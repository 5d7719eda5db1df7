import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { urlParts } from '../../url.ts'

/** Where the kernel's log is sent. */
export const KmsgLogConfig = defineResource({
  type: 'KmsgLogConfigs.runtime.talos.dev',
  namespace: 'runtime',
  displayType: 'KmsgLogConfig',
  spec: v.object({ destinations: v.optional(v.array(urlParts)) }),
})
