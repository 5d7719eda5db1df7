import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** A system partition that is mounted. */
export const RuntimeMountStatus = defineResource({
  type: 'MountStatuses.runtime.talos.dev',
  namespace: 'runtime',
  displayType: 'MountStatus',
  aliases: ['mounts'],
  automaticAliases: false,
  columns: { Source: '{.source}', Target: '{.target}', 'Filesystem Type': '{.filesystemType}' },
  spec: v.object({
    source: v.string(),
    target: v.string(),
    filesystemType: v.string(),
    options: v.optional(v.array(v.string()), []),
    encrypted: v.boolean(),
    encryptionProviders: v.optional(v.array(v.string())),
  }),
})
