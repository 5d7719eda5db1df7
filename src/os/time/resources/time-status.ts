import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { integer } from '../../values.ts'

/** Whether the clock is in step with the time servers. */
export const TimeStatus = defineResource({
  type: 'TimeStatuses.v1alpha1.talos.dev',
  namespace: 'runtime',
  displayType: 'TimeStatus',
  columns: { Synced: '{.synced}' },
  spec: v.object({ synced: v.boolean(), epoch: integer, syncDisabled: v.boolean() }),
})
