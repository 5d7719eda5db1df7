import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { integer } from '../../values.ts'
import { mountSpec } from './mount-spec.ts'

/** The desired location, size and file system of a volume. */
export const VolumeConfig = defineResource({
  type: 'VolumeConfigs.block.talos.dev',
  namespace: 'runtime',
  displayType: 'VolumeConfig',
  sensitive: true,
  spec: v.object({
    parentId: v.optional(v.string()),
    type: v.picklist(['partition', 'disk', 'tmpfs', 'directory', 'symlink', 'overlay', 'external']),
    provisioning: v.object({
      wave: v.optional(integer),
      diskSelector: v.optional(v.object({ match: v.optional(v.string()), external: v.optional(v.string()) })),
      partitionSpec: v.optional(
        v.object({
          minSize: integer,
          maxSize: v.optional(integer),
          relativeMaxSize: integer,
          negativeMaxSize: v.boolean(),
          grow: v.boolean(),
          label: v.optional(v.string()),
          typeUUID: v.optional(v.string()),
        }),
      ),
      filesystemSpec: v.optional(v.object({ type: v.string(), label: v.optional(v.string()) })),
    }),
    encryption: v.optional(
      v.object({
        provider: v.string(),
        keys: v.optional(
          v.array(
            v.object({
              slot: integer,
              type: v.string(),
              lockToState: v.optional(v.boolean()),
              staticPassphrase: v.optional(v.string()),
              kmsEndpoint: v.optional(v.string()),
              tpmCheckSecurebootStatusOnEnroll: v.optional(v.boolean()),
              pcrs: v.optional(v.array(integer)),
              pubKeyPcrs: v.optional(v.array(integer)),
            }),
          ),
          [],
        ),
        cipher: v.optional(v.string()),
        keySize: v.optional(integer),
        blockSize: v.optional(integer),
        perfOptions: v.optional(v.array(v.string())),
      }),
    ),
    locator: v.object({ match: v.optional(v.string()), diskMatch: v.optional(v.string()) }),
    mount: v.optional(mountSpec),
    symlink: v.optional(v.object({ symlinkTargetPath: v.string(), force: v.boolean() })),
  }),
})
