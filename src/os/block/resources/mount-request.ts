import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** Which volume is mounted, how and for whom. */
export const mountRequest = v.object({
  volumeID: v.string(),
  parentID: v.string(),
  readOnly: v.boolean(),
  detached: v.boolean(),
  disableAccessTime: v.optional(v.boolean()),
  secure: v.optional(v.boolean()),
  requesters: v.optional(v.array(v.string()), []),
  requesterIDs: v.optional(v.array(v.string()), []),
})

/** A request to mount a volume, merged from those of all users. */
export const MountRequest = defineResource({
  type: 'MountRequests.block.talos.dev',
  namespace: 'runtime',
  displayType: 'MountRequest',
  columns: { Volume: '{.volumeID}', Parent: '{.parentID}', Requesters: '{.requesters}' },
  spec: mountRequest,
})
