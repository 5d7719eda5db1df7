import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** One user's wish to have a volume mounted. */
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

/** One user's volume, mounted. */
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
