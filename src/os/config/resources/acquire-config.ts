import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** Asks for the machine configuration to be looked for. */
export const AcquireConfigSpec = defineResource({
  type: 'AcquireConfigSpecs.v1alpha1.talos.dev',
  namespace: 'runtime',
  displayType: 'AcquireConfigSpec',
  spec: v.object({}),
})

/** The id of the one request for a configuration, and of what answers it. */
export const acquireId = 'machine-config'

/** Says that the search for a configuration is over. */
export const AcquireConfigStatus = defineResource({
  type: 'AcquireConfigStatuses.v1alpha1.talos.dev',
  namespace: 'runtime',
  displayType: 'AcquireConfigStatus',
  spec: v.object({}),
})
