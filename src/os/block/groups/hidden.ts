/** Which mappings of the device mapper are parts of others, made by LVM for its own use. */
import type { Kernel } from '../../kernel.ts'

/** What LVM reserves in names for parts of a mirror, a RAID, a cache or a pool (lvm(8), "Valid names"). */
const reserved = /_(cdata|cmeta|corig|cvol|imeta|iorig|mimage|mlog|pmspare|rimage|rmeta|tdata|tmeta|vdata|wcorig)(_|$|-)/

/**
 * Whether a block device is an internal logical volume: it has no content of its own. LVM marks most by a suffix of the UUID
 * (`LVM-<group and volume>-<layer>`), the parts of a RAID by their names only.
 */
export function isInternalVolume(files: Pick<Kernel['files'], 'readTextIfThere'>, name: string): boolean {
  if (!name.startsWith('dm-')) return false
  const of = (field: string) => files.readTextIfThere(`/sys/class/block/${name}/dm/${field}`)?.trim() ?? ''
  const uuid = of('uuid')
  return uuid.startsWith('LVM-') && (uuid.split('-').length > 2 || reserved.test(of('name')))
}
