import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** The id of the one request for a configuration, and of what answers it. */
export const acquireId = 'machine-config'

/** Says that the search for a configuration is over. */
export const AcquireConfigStatus = defineResource({
  type: 'AcquireConfigStatuses.v1alpha1.talos.dev',
  namespace: 'runtime',
  displayType: 'AcquireConfigStatus',
  spec: v.object({}),
})
