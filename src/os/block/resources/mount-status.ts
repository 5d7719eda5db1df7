import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { fileSystem } from './file-system.ts'

/** A mounted volume and its users. */
export const MountStatus = defineResource({
  type: 'MountStatuses.block.talos.dev',
  namespace: 'runtime',
  displayType: 'MountStatus',
  columns: { Source: '{.source}', Target: '{.target}', Filesystem: '{.filesystem}', Volume: '{.spec.volumeID}' },
  spec: v.object({
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
    source: v.string(),
    target: v.string(),
    filesystem: fileSystem,
    encryptionProvider: v.optional(v.string()),
    readOnly: v.boolean(),
    projectQuotaSupport: v.boolean(),
    detached: v.boolean(),
  }),
})
