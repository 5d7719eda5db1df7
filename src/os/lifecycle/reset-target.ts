import type { Store } from '../../cosi/store.ts'
import { DiscoveredVolume } from '../block/resources/discovered-volume.ts'
import { Disk } from '../block/resources/disk.ts'
import { SystemDisk } from '../block/resources/system-disk.ts'
import type { Mode } from '../kernel.ts'
import { containerLabels, type ResetOptions } from './reset.ts'

/** A reset request. */
export interface ResetRequest {
  readonly mode: 'all' | 'system-disk' | 'user-disks'
  readonly labels: readonly string[]
  readonly disks: readonly string[]
}

/** The request names something this machine does not have. The message lists what it has. */
export class NothingSuch extends Error {
  override name = 'NothingSuch'
}

/** Resolves what to wipe on this machine. Throws NothingSuch before anything is changed. */
export function resetTarget({ store, mode }: { store: Store; mode: Mode }, request: ResetRequest): Pick<ResetOptions, 'system' | 'disks'> {
  const labels = labelsOf(store, mode)
  const unknown = request.labels.find((label) => !labels.includes(label))
  if (unknown !== undefined)
    throw new NothingSuch(`no partition "${unknown}" to wipe, this node has ${labels.length > 0 ? labels.join(', ') : 'none'}`)
  const system = request.mode === 'user-disks' ? [] : request.labels.length > 0 ? request.labels : 'all'
  return { system, disks: request.mode === 'system-disk' ? [] : request.disks.map((disk) => userDisk(store, mode, disk)) }
}

/** Labels of the system disk's partitions, in order. */
function labelsOf(store: Store, mode: Mode): readonly string[] {
  if (mode === 'container') return containerLabels
  const disk = store.get(SystemDisk, 'system-disk')?.spec.diskID
  return store
    .list(DiscoveredVolume)
    .filter(({ spec }) => disk && spec.parent === disk)
    .sort((a, b) => (a.spec.partition_index ?? 0) - (b.spec.partition_index ?? 0))
    .flatMap(({ spec }) => spec.partition_label || [])
}

function userDisk(store: Store, mode: Mode, name: string): string {
  const system = store.get(SystemDisk, 'system-disk')?.spec.diskID
  const disks =
    mode === 'container' ? [] : store.list(Disk).filter(({ metadata, spec }) => metadata.id !== system && !spec.readonly && !spec.cdrom)
  const found = disks.find(({ metadata, spec }) => name === metadata.id || name === spec.dev_path || spec.symlinks?.includes(name))
  if (found) return found.spec.dev_path
  const known = disks.map(({ spec }) => spec.dev_path).join(', ')
  throw new NothingSuch(
    known ? `no disk "${name}" for workloads to wipe, this node has ${known}` : `this node has no user disks to wipe (requested: ${name})`,
  )
}
