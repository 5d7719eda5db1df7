import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** Whether user disks are prepared. */
export const UserDiskConfigStatus = defineResource({
  type: 'UserDiskConfigStatuses.block.talos.dev',
  namespace: 'runtime',
  displayType: 'UserDiskConfigStatus',
  columns: { Ready: '{.ready}' },
  spec: v.object({ ready: v.boolean(), tornDown: v.boolean() }),
})
