import { expect, test } from 'bun:test'
import { silent } from '../../../src/cosi/log.ts'
import { Store } from '../../../src/cosi/store.ts'
import { wipeDevices } from '../../../src/os/block/api/wipe.ts'
import { BlockDevice } from '../../../src/os/block/resources/block-device.ts'
import { DiscoveredVolume } from '../../../src/os/block/resources/discovered-volume.ts'
import { SystemDisk } from '../../../src/os/block/resources/system-disk.ts'
import { VolumeStatus } from '../../../src/os/block/resources/volume-status.ts'

/** Labels of the partitions of sda, which is the system disk, and of sdb. */
const labels = { sda: ['EFI', 'BIOS', 'BOOT', 'META', 'STATE', 'EPHEMERAL', '', 'windows', 'u-data'], sdb: ['EPHEMERAL', 'r-raw', ''] }

function machine() {
  const store = new Store()
  const touched: string[] = []
  for (const [disk, names] of Object.entries(labels)) {
    store.put(BlockDevice, disk, { type: 'disk', major: 8, minor: 0, devicePath: '', generation: 1 })
    names.forEach((name, index) => {
      const id = `${disk}${index + 1}`
      // The kernel may not know the labels of a table that was rewritten while the disk was in use.
      const device = { type: 'partition', major: 8, minor: index, devicePath: '', generation: 1, parent: disk, partitionNumber: index + 1 }
      store.put(BlockDevice, id, index % 2 ? { ...device, partitionName: name } : device)
      const found = { type: 'partition', device_path: '', offset: 0, size: 1, pretty_size: '1 B', name: '', parent: disk }
      if (index % 2 === 0) store.put(DiscoveredVolume, id, { ...found, dev_path: `/dev/${id}`, partition_label: name })
    })
  }
  store.put(SystemDisk, 'system-disk', { diskID: 'sda', devPath: '/dev/sda' })
  const openDevice = async (path: string) => {
    touched.push(path)
    throw new Error('opened')
  }
  const method = wipeDevices({ store, log: silent, kernel: { block: { openDevice } } } as never)
  const wipe = async (device: string, more: object = {}) => {
    const descriptor = { device, method: 0, skipVolumeCheck: false, skipSecondaryCheck: false, dropPartition: false, ...more }
    const handle = method.handle as (request: unknown, context: unknown) => Promise<unknown>
    return handle({ devices: [descriptor] }, {}).then(
      () => 'wiped',
      (error) => String(error.message),
    )
  }
  return { store, touched, wipe }
}

const everyWay = [{}, { skipVolumeCheck: true, skipSecondaryCheck: true }, { dropPartition: true, skipVolumeCheck: true, method: 1 }]

test.each(labels.sda.slice(0, -1).map((label, index) => [label, `sda${index + 1}`]))(
  'partition "%s" of the system disk is never wiped, whatever checks the caller skips',
  async (label, device) => {
    const { wipe, touched } = machine()
    for (const way of everyWay)
      expect(await wipe(device, way)).toBe(
        `wipe: "${device}" ${label ? `(${label}) ` : ''}is a system disk partition: to give it up run "talosctl reset"`,
      )
    expect(touched).toEqual([])
  },
)

test('the system disk itself is never wiped', async () => {
  const { wipe, touched } = machine()
  for (const way of everyWay.slice(0, 2)) expect(await wipe('sda', way)).toContain('the system is installed on "sda"')
  expect(touched).toEqual([])
})

test('a workload partition may be wiped on any disk if no volume uses it or the caller skips that check', async () => {
  const { wipe, touched, store } = machine()
  expect(await wipe('sda9')).toBe('opened')
  expect(await wipe('sdb2')).toBe('opened')
  store.put(VolumeStatus, 'u-data', { phase: 'ready', type: 'partition', location: '/dev/sda9', parentLocation: '/dev/sda' })
  expect(await wipe('sda9')).toContain('remove it from the configuration first')
  expect(await wipe('sda9', { skipVolumeCheck: true })).toBe('opened')
  expect(touched).toEqual(['/dev/sda9', '/dev/sdb2', '/dev/sda9'])
})

test('a system volume on another disk is not wiped, even if the volume check is skipped', async () => {
  const { wipe, touched, store } = machine()
  store.put(VolumeStatus, 'r-raw', { phase: 'ready', type: 'partition', location: '/dev/sdb2', parentLocation: '/dev/sdb' })
  store.put(VolumeStatus, 'EPHEMERAL', { phase: 'ready', type: 'partition', location: '/dev/sdb1', parentLocation: '/dev/sdb' })
  for (const device of ['sdb', 'sdb1'])
    expect(await wipe(device, { skipVolumeCheck: true })).toBe(
      `wipe: volume "EPHEMERAL" uses "${device}": to give it up run "talosctl reset"`,
    )
  expect(touched).toEqual([])
})
