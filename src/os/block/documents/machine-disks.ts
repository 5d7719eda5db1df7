import * as v from 'valibot'
import { described, flag, integer, listOf, section, text, unsigned } from '../../../document/fields.ts'
import type { Reporter } from '../../../document/kind.ts'
import { parseByteSize } from '../../../document/quantity.ts'
import { encryptionRules, kmsEndpointText } from './volume-fields.ts'

const size = v.pipe(
  v.string(),
  v.check((value) => parseByteSize(value) !== undefined, '{} is not a size, like "10GiB" or 0 for the remaining space'),
)

/** `machine.disks`: partitions for workloads, the older form of volume documents. */
export const machineDisks = listOf(
  section({
    device: described(text, 'The disk.'),
    partitions: described(
      listOf(
        section({ size: described(size, 'How large; 0 for the rest of the disk.'), mountpoint: described(text, 'Where it is mounted.') }),
      ),
      'What is on the disk, in order.',
    ),
  }),
)

const systemVolume = section({
  provider: described(text, 'How it is encrypted: luks2.'),
  keys: described(
    listOf(
      section({
        static: described(section({ passphrase: described(text, 'The passphrase itself.') }), 'A passphrase.'),
        nodeID: described(section({}), 'Derived from the UUID of the machine and the name of the volume.'),
        kms: described(section({ endpoint: described(text, kmsEndpointText) }), 'Sealed by a server on the network.'),
        slot: described(integer, 'The place of the key.'),
        tpm: described(
          section({ checkSecurebootStatusOnEnroll: described(flag, 'Refuses to seal while Secure Boot is off.') }),
          'Sealed by the TPM of the machine, for images whose measurements the maker of the running one signed.',
        ),
      }),
    ),
    'Keys, each of which opens it.',
  ),
  cipher: described(text, 'The cipher.'),
  keySize: described(unsigned(32), 'Bits of the key.'),
  blockSize: described(unsigned(64), 'Bytes of a block.'),
  options: described(listOf(text), 'How the kernel schedules encryption.'),
})

/** `machine.systemDiskEncryption`: encryption of system volumes, the older form. */
export const systemDiskEncryption = section({
  state: described(systemVolume, 'Encrypts STATE.'),
  ephemeral: described(systemVolume, 'Encrypts EPHEMERAL.'),
})

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
    // Here an empty provider is the default.
    if (section) encryptionRules({ ...section, provider: section.provider || 'luks2' }, report, ['machine', 'systemDiskEncryption', volume])
  }
}
