import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** Requests the search for the machine configuration. */
export const AcquireConfigSpec = defineResource({
  type: 'AcquireConfigSpecs.v1alpha1.talos.dev',
  namespace: 'runtime',
  displayType: 'AcquireConfigSpec',
  spec: v.object({}),
})

/** The id of the request for a configuration, and of its status. */
export const acquireId = 'machine-config'

/** States that the search for a configuration has ended. */
export const AcquireConfigStatus = defineResource({
  type: 'AcquireConfigStatuses.v1alpha1.talos.dev',
  namespace: 'runtime',
  displayType: 'AcquireConfigStatus',
  spec: v.object({}),
})
