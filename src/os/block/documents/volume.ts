import { described, flag, oneOf, section, text } from '../../../document/fields.ts'
import { defineDocument, type Reporter } from '../../../document/kind.ts'
import { encryption, encryptionRules, provisioning, provisioningRules, volumeNameRules } from './volume-fields.ts'

/** Configures a system volume. */
export const VolumeConfig = defineDocument({
  kind: 'VolumeConfig',
  description: "One of the system's own volumes: STATE, EPHEMERAL or IMAGECACHE.",
  nameKey: 'name',
  schema: section({
    name: described(text, 'The unique name of this document among those of its kind.'),
    provisioning: described(provisioning, 'How its place is found and made.'),
    encryption: described(encryption, 'Encrypts the volume.'),
    mount: described(section({ secure: described(flag, 'Nothing on it can be run or be a device.') }), 'How it is mounted.'),
  }),
  rules(volume, report) {
    if (!['STATE', 'EPHEMERAL', 'IMAGECACHE'].includes(volume.name ?? ''))
      report.error(['name'], 'the name has to be STATE, EPHEMERAL or IMAGECACHE')
    if (volume.name === 'IMAGECACHE' && volume.mount?.secure === false)
      report.error(['mount', 'secure'], 'IMAGECACHE holds no programs and no devices, leave it out')
    if (volume.name === 'STATE') {
      if (volume.mount?.secure) report.error(['mount', 'secure'], 'STATE is mounted before its configuration is read, leave it out')
      if (volume.provisioning) report.error(['provisioning'], 'STATE has a fixed location')
      for (const [index, key] of (volume.encryption?.keys ?? []).entries()) {
        if (key.lockToState) report.error(['encryption', 'keys', index, 'lockToState'], 'STATE cannot be locked to itself')
      }
    }
    if (volume.provisioning) provisioningRules(volume.provisioning, report)
    if (volume.encryption) encryptionRules(volume.encryption, report)
  },
})

/** Configures a volume for workloads. */
export const UserVolumeConfig = defineDocument({
  kind: 'UserVolumeConfig',
  description: 'A volume for workloads, mounted under /var/mnt.',
  nameKey: 'name',
  schema: section({
    name: described(text, 'The unique name of this document among those of its kind.'),
    volumeType: described(oneOf('directory', 'disk', 'partition'), 'Whether it is a folder, a partition or a whole disk.'),
    provisioning: described(provisioning, 'How its place is found and made.'),
    filesystem: described(
      section({
        type: described(oneOf('ext4', 'xfs'), 'The kind of file system.'),
        projectQuotaSupport: described(flag, 'Whether it counts space by project.'),
      }),
      'What is made on it.',
    ),
    encryption: described(encryption, 'Encrypts the volume.'),
    mount: described(
      section({
        disableAccessTime: described(flag, 'Does not note when files were read.'),
        secure: described(flag, 'Nothing on it can be run or be a device.'),
      }),
      'How it is mounted.',
    ),
  }),
  rules(volume, report) {
    volumeNameRules(volume.name, report)
    const { volumeType = 'partition', filesystem } = volume
    if (volumeType === 'directory') {
      for (const key of ['provisioning', 'encryption', 'filesystem', 'mount'] as const) {
        if (volume[key]) report.error([key], 'a volume of type "directory" has none')
      }
      return
    }
    if (volumeType === 'disk') {
      provisioningRules({ diskSelector: volume.provisioning?.diskSelector, minSize: '1' }, report, { required: 'sizes' })
      for (const key of ['minSize', 'maxSize', 'grow'] as const) {
        if (volume.provisioning?.[key] !== undefined) report.error(['provisioning', key], 'a volume of type "disk" takes the whole disk')
      }
    } else provisioningRules(volume.provisioning ?? {}, report, { required: 'sizes' })
    if (filesystem?.projectQuotaSupport && filesystem.type === 'ext4')
      report.error(['filesystem', 'projectQuotaSupport'], 'only xfs has project quotas')
    if (volume.encryption) encryptionRules(volume.encryption, report)
  },
})

const bare = section({
  name: described(text, 'The unique name of this document among those of its kind.'),
  provisioning: described(provisioning, 'How its place is found and made.'),
  encryption: described(encryption, 'Encrypts the volume.'),
})

function bareRules(volume: { name?: string; provisioning?: object; encryption?: object }, report: Reporter): void {
  volumeNameRules(volume.name, report)
  provisioningRules(volume.provisioning ?? {}, report, { required: 'sizes' })
  if (volume.encryption) encryptionRules(volume.encryption, report)
}

/** Configures a partition without a file system. */
export const RawVolumeConfig = defineDocument({
  kind: 'RawVolumeConfig',
  description: 'A partition without a file system, for workloads that use block devices.',
  nameKey: 'name',
  schema: bare,
  rules: bareRules,
})

/** Configures a swap partition. */
export const SwapVolumeConfig = defineDocument({
  kind: 'SwapVolumeConfig',
  description: 'A swap partition.',
  nameKey: 'name',
  schema: bare,
  rules: bareRules,
})
