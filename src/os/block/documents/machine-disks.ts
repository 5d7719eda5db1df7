import * as v from 'valibot'
import { flag, integer, listOf, section, text, unsigned } from '../../../document/fields.ts'
import type { Reporter } from '../../../document/kind.ts'
import { parseByteSize } from '../../../document/quantity.ts'
import { notYet } from '../../../document/unsupported.ts'
import { encryptionRules, noEncryption } from './volume-fields.ts'

const size = v.pipe(
  v.string(),
  v.check((value) => parseByteSize(value) !== undefined, '{} is not a size, like "10GiB" or 0 for the remaining space'),
)

/** `machine.disks`: partitions for workloads, the older form of volume documents. */
export const machineDisks = listOf(section({ device: text, partitions: listOf(section({ size, mountpoint: text })) }))

const systemVolume = section({
  provider: text,
  keys: listOf(
    section({
      static: section({ passphrase: text }),
      nodeID: section({}),
      kms: section({ endpoint: text }),
      slot: integer,
      tpm: section({ checkSecurebootStatusOnEnroll: flag }),
    }),
  ),
  cipher: text,
  keySize: unsigned(32),
  blockSize: unsigned(64),
  options: listOf(text),
})

/** `machine.systemDiskEncryption`: encryption of system volumes, the older form. */
export const systemDiskEncryption = section({ state: notYet(systemVolume, noEncryption), ephemeral: notYet(systemVolume, noEncryption) })

/** Validation rules of both sections. */
export function machineDiskRules(
  machine: {
    disks?: v.InferOutput<typeof machineDisks> | undefined
    systemDiskEncryption?: v.InferOutput<typeof systemDiskEncryption> | undefined
  },
  report: Reporter,
): void {
  for (const [index, disk] of (machine.disks ?? []).entries()) {
    const partitions = disk.partitions ?? []
    for (const [at, partition] of partitions.entries()) {
      if (parseByteSize(partition.size ?? '0') === 0 && at < partitions.length - 1) {
        report.error(['machine', 'disks', index, 'partitions', at, 'size'], 'only the last partition may take the remaining space')
      }
    }
  }
  for (const volume of ['state', 'ephemeral'] as const) {
    const section = machine.systemDiskEncryption?.[volume]
    if (section) encryptionRules(section, report, ['machine', 'systemDiskEncryption', volume])
  }
}
