import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { integer } from '../../values.ts'
import { fileSystem } from './file-system.ts'
import { mountSpec } from './mount-spec.ts'

/** The phase of a volume: located, provisioned, prepared, ready, or the error. */
export const VolumeStatus = defineResource({
  type: 'VolumeStatuses.block.talos.dev',
  namespace: 'runtime',
  displayType: 'VolumeStatus',
  columns: { Type: '{.type}', Phase: '{.phase}', Location: '{.location}', Size: '{.prettySize}' },
  spec: v.object({
    phase: v.picklist(['waiting', 'failed', 'missing', 'located', 'provisioned', 'prepared', 'ready', 'closed']),
    preFailPhase: v.optional(v.picklist(['waiting', 'failed', 'missing', 'located', 'provisioned', 'prepared', 'ready', 'closed'])),
    type: v.picklist(['partition', 'disk', 'tmpfs', 'directory', 'symlink', 'overlay', 'external']),
    parentID: v.optional(v.string()),
    location: v.optional(v.string()),
    mountLocation: v.optional(v.string()),
    partitionIndex: v.optional(integer),
    parentLocation: v.optional(v.string()),
    uuid: v.optional(v.string()),
    partitionUUID: v.optional(v.string()),
    size: v.optional(integer),
    prettySize: v.optional(v.string()),
    filesystem: v.optional(fileSystem),
    encryptionProvider: v.optional(v.string()),
    encryptionFailedSyncs: v.optional(v.array(v.string())),
    configuredEncryptionKeys: v.optional(v.array(v.string())),
    encryptionLockedToState: v.optional(v.boolean()),
    encryptionSlot: v.optional(integer),
    tpmEncryptionOptions: v.optional(v.object({ pcrs: v.optional(v.array(integer)), pubKeyPcrs: v.optional(v.array(integer)) })),
    mountSpec: v.optional(mountSpec),
    symlink: v.optional(v.object({ symlinkTargetPath: v.string(), force: v.boolean() })),
    errorMessage: v.optional(v.string()),
  }),
})
