import { describe, expect, test } from 'bun:test'
import { Store } from '../../../src/cosi/store.ts'
import { DiscoveredVolume } from '../../../src/os/block/resources/discovered-volume.ts'
import { Disk } from '../../../src/os/block/resources/disk.ts'
import { SystemDisk } from '../../../src/os/block/resources/system-disk.ts'
import { NothingSuch, type ResetRequest, resetTarget } from '../../../src/os/lifecycle/reset-target.ts'

function installed(): Store {
  const store = new Store()
  for (const id of ['vda', 'vdb', 'sr0'])
    store.put(Disk, id, {
      ...{ dev_path: `/dev/${id}`, size: 1, pretty_size: '', io_size: 0, sector_size: 512, readonly: id === 'sr0', cdrom: id === 'sr0' },
      symlinks: [`/dev/disk/by-id/${id}`],
    })
  store.put(SystemDisk, 'system-disk', { diskID: 'vda', devPath: '/dev/vda' })
  for (const [index, label] of ['EFI', 'META', 'STATE', 'EPHEMERAL'].entries())
    store.put(DiscoveredVolume, `vda${index + 1}`, {
      ...{
        dev_path: `/dev/vda${index + 1}`,
        type: 'partition',
        device_path: '',
        parent: 'vda',
        offset: 0,
        size: 1,
        pretty_size: '',
        name: '',
      },
      ...{ partition_label: label, partition_index: index + 1 },
    })
  return store
}

const settings = (given: Partial<ResetRequest> = {}): ResetRequest => ({ mode: 'all', labels: [], disks: [], ...given })
const onMetal = (given: Partial<ResetRequest>) => resetTarget({ store: installed(), mode: 'metal' }, settings(given))

describe('a reset of a machine', () => {
  test('wipes the whole system disk unless partitions are named', () => {
    expect(onMetal({})).toEqual({ system: 'all', disks: [] })
    expect(onMetal({ labels: ['STATE', 'EPHEMERAL'] })).toEqual({ system: ['STATE', 'EPHEMERAL'], disks: [] })
  })

  test('wipes user disks by any of their names, and only these on request', () => {
    expect(onMetal({ disks: ['/dev/vdb'] })).toEqual({ system: 'all', disks: ['/dev/vdb'] })
    expect(onMetal({ mode: 'user-disks', disks: ['/dev/disk/by-id/vdb'] })).toEqual({ system: [], disks: ['/dev/vdb'] })
    expect(onMetal({ mode: 'system-disk', disks: ['vdb'] })).toEqual({ system: 'all', disks: [] })
  })

  test('of an unknown target is refused with the list of targets', () => {
    expect(() => onMetal({ labels: ['BOOT'] })).toThrow('no partition "BOOT" to wipe, this node has EFI, META, STATE, EPHEMERAL')
    expect(() => onMetal({ disks: ['/dev/vda'] })).toThrow('no disk "/dev/vda" for workloads to wipe, this node has /dev/vdb')
    expect(() => onMetal({ disks: ['sr0'] })).toThrow(NothingSuch)
  })
})

test('a container has two directories to empty and no disks', () => {
  const inContainer = (given: Partial<ResetRequest>) => resetTarget({ store: installed(), mode: 'container' }, settings(given))
  expect(inContainer({ labels: ['STATE'] })).toEqual({ system: ['STATE'], disks: [] })
  expect(() => inContainer({ labels: ['META'] })).toThrow('this node has STATE, EPHEMERAL')
  expect(() => inContainer({ disks: ['/dev/vdb'] })).toThrow('this node has no user disks to wipe (requested: /dev/vdb)')
})
