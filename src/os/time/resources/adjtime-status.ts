import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { duration, integer } from '../../values.ts'

/** How the kernel disciplines the clock. */
export const AdjtimeStatus = defineResource({
  type: 'AdjtimeStatuses.v1alpha1.talos.dev',
  namespace: 'runtime',
  displayType: 'AdjtimeStatus',
  columns: { Offset: '{.offset}', EstError: '{.estError}', MaxError: '{.maxError}', Status: '{.status}', Sync: '{.syncStatus}' },
  spec: v.object({
    offset: duration,
    frequencyAdjustmentRatio: v.number(),
    maxError: duration,
    estError: duration,
    status: v.string(),
    constant: integer,
    syncStatus: v.boolean(),
    state: v.string(),
  }),
})
