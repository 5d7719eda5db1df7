import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { certificateAndKey } from '../../values.ts'

/** An authority generated at each start, for the API without a configuration. */
export const MaintenanceRootSecret = defineResource({
  type: 'MaintenanceRootSecrets.secrets.talos.dev',
  namespace: 'secrets',
  displayType: 'MaintenanceRootSecret',
  sensitive: true,
  spec: v.object({ ca: v.optional(certificateAndKey) }),
})
