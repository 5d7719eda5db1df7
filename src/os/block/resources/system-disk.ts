import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** The disk the system is installed on. */
export const SystemDisk = defineResource({
  type: 'SystemDisks.block.talos.dev',
  namespace: 'runtime',
  displayType: 'SystemDisk',
  columns: { Disk: '{.diskID}' },
  spec: v.object({ diskID: v.string(), devPath: v.string() }),
})
