import type { Store } from '../../../cosi/store.ts'
import { storage as enums } from '../../../rpc/enums.ts'
import type { storage } from '../../../rpc/messages.ts'
import { inMaintenanceOr, type Method, unary } from '../../../rpc/server/method.ts'
import { RpcError } from '../../../rpc/status.ts'
import { ProgramFailed } from '../../../supervise/run-program.ts'
import { failedWith } from '../../../wire/errno.ts'
import type { Machine } from '../../area.ts'
import { stopArray } from '../groups/arrays.ts'
import { deactivateGroupOf } from '../groups/lvm.ts'
import { BlockDevice } from '../resources/block-device.ts'
import { DiscoveredVolume } from '../resources/discovered-volume.ts'
import { Disk } from '../resources/disk.ts'
import { SystemDisk } from '../resources/system-disk.ts'
import { VolumeStatus } from '../resources/volume-status.ts'
import { dropPartition, wipeDevice } from '../wipe.ts'

type Descriptor = storage.BlockDeviceWipeDescriptor

const { Method: methods } = enums.BlockDeviceWipeDescriptor

/** Wipes disks and partitions that no volume uses. All of them are checked before the first is wiped. */
export const wipeDevices = (machine: Pick<Machine, 'kernel' | 'log' | 'store' | 'spawn'>): Method =>
  unary('storage.StorageService/BlockDeviceWipe', inMaintenanceOr(['os:admin']), async ({ devices }, { signal }) => {
    if (devices.length === 0) throw new RpcError('InvalidArgument', 'wipe: name the disks or partitions to wipe')
    for (const descriptor of devices) refuse(machine.store, descriptor)
    await takeApart(
      machine,
      devices.flatMap(({ device, skipSecondaryCheck }) => (skipSecondaryCheck ? [device] : [])),
    )
    for (const { device, method, dropPartition: drop } of devices) {
      await wiped(`wipe "${device}"`, () =>
        wipeDevice(machine, `/dev/${device}`, { method: method === methods.ZEROES ? 'zeroes' : 'fast', signal }),
      )
      const { parent, partitionNumber } = machine.store.get(BlockDevice, device)?.spec ?? {}
      if (drop && parent && partitionNumber)
        await wiped(`remove partition "${device}"`, () => dropPartition(machine, `/dev/${parent}`, partitionNumber))
    }
    return { messages: [{}] }
  })

/** Ends the use of disks and partitions by the arrays and the volume groups that they are part of. */
async function takeApart(machine: Pick<Machine, 'spawn' | 'store'>, devices: readonly string[]): Promise<void> {
  for (const device of devices)
    if (machine.store.get(DiscoveredVolume, device)?.spec.name === 'lvm2-pv')
      await wiped(`wipe "${device}"`, () => deactivateGroupOf(machine, `/dev/${device}`))
  // Several members of one array may be wiped at once.
  for (const { metadata, spec } of machine.store.list(BlockDevice)) {
    const member = /^md\d/.test(metadata.id) ? devices.find((device) => spec.secondaries?.includes(device)) : undefined
    if (member !== undefined) await wiped(`wipe "${member}"`, () => stopArray(machine, `/dev/${metadata.id}`))
  }
}

async function wiped(what: string, run: () => Promise<void>): Promise<void> {
  try {
    await run()
  } catch (error) {
    if (failedWith(error, 'EBUSY'))
      throw new RpcError('FailedPrecondition', `${what}: it is in use (mounted, swapped to, or part of another device)`)
    if (error instanceof ProgramFailed) throw new RpcError('FailedPrecondition', `${what}: ${error.message}`)
    throw error
  }
}

/** Throws RpcError for a device that must not be wiped. */
function refuse(store: Store, { device, dropPartition: drop, skipVolumeCheck, skipSecondaryCheck }: Descriptor): void {
  const found = store.get(BlockDevice, device)?.spec
  const known = () =>
    store
      .list(BlockDevice)
      .map(({ metadata }) => metadata.id)
      .filter((id) => !/^(loop|z?ram|dm-)/.test(id))
      .join(', ')
  if (!found) throw new RpcError('NotFound', `wipe: there is no disk or partition "${device}", there are ${known()}`)
  const disk = store.get(Disk, found.parent ?? device)?.spec
  if (disk?.readonly || disk?.cdrom) throw new RpcError('FailedPrecondition', `wipe: "${device}" cannot be written to`)
  if (drop && !found.parent) throw new RpcError('InvalidArgument', `wipe: "${device}" is a disk: only partitions can be dropped`)
  if (store.get(SystemDisk, 'system-disk')?.spec.diskID === device)
    throw new RpcError('FailedPrecondition', `wipe: the system is installed on "${device}": to give it up run "talosctl reset"`)
  refuseSystemPartition(store, device, found.parent, found.partitionName)
  refuseVolume(store, device, skipVolumeCheck)
  if (skipSecondaryCheck) return
  const over = store.list(BlockDevice).find(({ spec }) => spec.secondaries?.includes(device))
  if (over)
    throw new RpcError(
      'FailedPrecondition',
      `wipe: "${device}" is part of "${over.metadata.id}": to take that apart first, add --skip-secondary-check`,
    )
}

/** Ids of workload volumes; their partition labels are equal to them. */
const forWorkloads = /^[urse]-/

/** On the system disk only workload partitions may be wiped. Boot and system partitions are left to a reset. */
function refuseSystemPartition(store: Store, device: string, parent: string | undefined, name: string | undefined): void {
  if (!parent || store.get(SystemDisk, 'system-disk')?.spec.diskID !== parent) return
  const label = store.get(DiscoveredVolume, device)?.spec.partition_label ?? name ?? ''
  if (forWorkloads.test(label)) return
  throw new RpcError(
    'FailedPrecondition',
    `wipe: "${device}" ${label ? `(${label}) ` : ''}is a system disk partition: to give it up run "talosctl reset"`,
  )
}

/** `skip` is set by the caller and applies to workload volumes only. */
function refuseVolume(store: Store, device: string, skip: boolean): void {
  const path = `/dev/${device}`
  const uses = store.list(VolumeStatus).filter(({ spec }) => spec.location === path || spec.parentLocation === path)
  const volume = uses.find(({ metadata }) => !forWorkloads.test(metadata.id)) ?? (skip ? undefined : uses[0])
  if (!volume) return
  const { id } = volume.metadata
  throw new RpcError(
    'FailedPrecondition',
    `wipe: volume "${id}" uses "${device}": ${forWorkloads.test(id) ? 'remove it from the configuration first' : 'to give it up run "talosctl reset"'}`,
  )
}
