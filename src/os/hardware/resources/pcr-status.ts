import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** A platform configuration register of the TPM. */
export const PCRStatus = defineResource({
  type: 'PCRStatuses.hardware.talos.dev',
  namespace: 'hardware',
  displayType: 'PCRStatus',
  spec: v.object({}),
})
