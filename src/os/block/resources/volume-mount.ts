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

/** Who requests the volumes that the system itself uses. */
const requester = 'machined'

/** Id of the system's own mount request for a volume, and of the corresponding status. */
export const mountId = (volumeID: string): string => `${requester}-${volumeID}`

/** The system's own mount request for a volume. */
export const mountRequest = (volumeID: string, secure = false) => ({
  volumeID,
  requester,
  readOnly: false,
  detached: false,
  disableAccessTime: false,
  secure,
})
