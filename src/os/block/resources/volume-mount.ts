import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** A user's request to mount a volume. */
export const VolumeMountRequest = defineResource({
  type: 'VolumeMountRequests.block.talos.dev',
  namespace: 'runtime',
  displayType: 'VolumeMountRequest',
  columns: { 'Volume ID': '{.volumeID}', Requester: '{.requester}' },
  spec: v.object({
    volumeID: v.string(),
    requester: v.string(),
    readOnly: v.boolean(),
    detached: v.boolean(),
    disableAccessTime: v.boolean(),
    secure: v.boolean(),
  }),
})

/** A volume mounted for one user. */
export const VolumeMountStatus = defineResource({
  type: 'VolumeMountStatuses.block.talos.dev',
  namespace: 'runtime',
  displayType: 'VolumeMountStatus',
  columns: { 'Volume ID': '{.volumeID}', Requester: '{.requester}', Target: '{.target}' },
  spec: v.object({
    volumeID: v.string(),
    requester: v.string(),
    target: v.string(),
    readOnly: v.boolean(),
    detached: v.boolean(),
    disableAccessTime: v.boolean(),
    secure: v.boolean(),
  }),
})
