import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** A request to mount a volume, merged from those of all users. */
export const MountRequest = defineResource({
  type: 'MountRequests.block.talos.dev',
  namespace: 'runtime',
  displayType: 'MountRequest',
  columns: { Volume: '{.volumeID}', Parent: '{.parentID}', Requesters: '{.requesters}' },
  spec: v.object({
    volumeID: v.string(),
    parentID: v.string(),
    readOnly: v.boolean(),
    detached: v.boolean(),
    disableAccessTime: v.optional(v.boolean()),
    secure: v.optional(v.boolean()),
    requesters: v.optional(v.array(v.string()), []),
    requesterIDs: v.optional(v.array(v.string()), []),
  }),
})
