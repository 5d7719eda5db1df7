import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { ip } from '../../values.ts'

/** Where the API listens while there is no configuration. */
export const MaintenanceServiceConfig = defineResource({
  type: 'MaintenanceServiceConfigs.runtime.talos.dev',
  namespace: 'runtime',
  displayType: 'MaintenanceServiceConfig',
  spec: v.object({ listenAddress: v.string(), reachableAddresses: v.optional(v.array(ip), []) }),
})

/** Requests the API without a configuration. */
export const MaintenanceServiceRequest = defineResource({
  type: 'MaintenanceServiceRequests.runtime.talos.dev',
  namespace: 'runtime',
  displayType: 'MaintenanceServiceRequest',
  spec: v.object({}),
})
