import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** Asks for the API to run without a configuration. */
export const MaintenanceServiceRequest = defineResource({
  type: 'MaintenanceServiceRequests.runtime.talos.dev',
  namespace: 'runtime',
  displayType: 'MaintenanceServiceRequest',
  spec: v.object({}),
})
