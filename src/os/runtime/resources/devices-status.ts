import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** Whether the devices of the machine have settled. */
export const DevicesStatus = defineResource({
  type: 'DevicesStatuses.runtime.talos.dev',
  namespace: 'runtime',
  displayType: 'DevicesStatus',
  columns: { Ready: '{.ready}' },
  spec: v.object({ ready: v.boolean() }),
})
