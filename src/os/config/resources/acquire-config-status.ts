import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** Says that the search for a configuration is over. */
export const AcquireConfigStatus = defineResource({
  type: 'AcquireConfigStatuses.v1alpha1.talos.dev',
  namespace: 'runtime',
  displayType: 'AcquireConfigStatus',
  spec: v.object({}),
})
