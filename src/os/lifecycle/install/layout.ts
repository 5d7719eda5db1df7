/** How the system disk is divided. */
import type { PlannedPartition } from '../../block/layout.ts'
import { mebibyte } from '../../block/sizes.ts'

/** How a machine starts. */
export type Firmware = 'uefi' | 'bios'

/** A disk must have so many bytes, so that volumes have room behind what the installation makes. */
export const leastDisk = 6 * 1024 * mebibyte

/** What META is called until everything else is written: a disk counts as installed by the name of META. */
export const unfinished = 'INSTALLING'

/** The partitions the installation makes; STATE and EPHEMERAL follow when the machine starts from the disk. */
export function installPartitions(firmware: Firmware): PlannedPartition[] {
  const meta: PlannedPartition = { label: 'META', type: 'linux', size: mebibyte }
  if (firmware === 'uefi') return [{ label: 'EFI', type: 'efi', size: 2101 * mebibyte }, meta]
  return [
    { label: 'EFI', type: 'efi', size: 100 * mebibyte },
    { label: 'BIOS', type: 'bios', size: mebibyte },
    { label: 'BOOT', type: 'linux', size: 2000 * mebibyte },
    meta,
  ]
}

/** Parameters of the running kernel that an installed one is given too. */
const preserved = [
  'siderolink.api',
  'talos.events.sink',
  'talos.logging.kernel',
  'em.events_url',
  'talos.auditd.disabled',
  'talos.dashboard.disabled',
  'net.ifnames',
  'module.sig_enforce',
  'talos.config',
  'console',
]

/** What an installed kernel is given beside what its image says. */
export function ownParameters(running: string, extra: readonly string[]): string[] {
  const words = running.split(/\s+/).filter((word) => preserved.includes(word.split('=')[0] ?? ''))
  return [...new Set([...words, ...extra])]
}
