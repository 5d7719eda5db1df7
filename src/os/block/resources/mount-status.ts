import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { fileSystem } from './file-system.ts'
import { mountRequest } from './mount-request.ts'

/** A mounted volume and its users. */
export const MountStatus = defineResource({
  type: 'MountStatuses.block.talos.dev',
  namespace: 'runtime',
  displayType: 'MountStatus',
  columns: { Source: '{.source}', Target: '{.target}', Filesystem: '{.filesystem}', Volume: '{.spec.volumeID}' },
  spec: v.object({
    spec: mountRequest,
    source: v.string(),
    target: v.string(),
    filesystem: fileSystem,
    encryptionProvider: v.optional(v.string()),
    readOnly: v.boolean(),
    projectQuotaSupport: v.boolean(),
    detached: v.boolean(),
  }),
})
