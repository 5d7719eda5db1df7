import { expect, test } from 'bun:test'
import { systemClock } from '../../../src/cosi/clock.ts'
import { silent } from '../../../src/cosi/log.ts'
import { Store } from '../../../src/cosi/store.ts'
import type { Machine } from '../../../src/os/area.ts'
import { EncryptedVolumes } from '../../../src/os/block/encryption/encrypted-volumes.ts'
import { DiscoveredVolume } from '../../../src/os/block/resources/discovered-volume.ts'
import { Disk } from '../../../src/os/block/resources/disk.ts'
import { prepare } from '../../../src/os/block/volumes/prepare.ts'
import { provision } from '../../../src/os/block/volumes/provision.ts'
import { Settling } from '../../../src/os/block/volumes/settle.ts'
import { imageCacheMedium, stateVolume } from '../../../src/os/block/volumes/system.ts'
import { raidSuperblock } from './raid-superblock.ts'

/** A system disk whose STATE holds a file system of this name, or nothing; or has no STATE any more. */
function found(name?: string) {
  const store = new Store()
  const disk = { io_size: 512, sector_size: 512, readonly: false, cdrom: false, size: 8 << 20, pretty_size: '8 MiB' }
  store.put(Disk, 'vda', { ...disk, dev_path: '/dev/vda' })
  const partition = (label: string, dev_path: string, name: string) =>
    store.put(DiscoveredVolume, dev_path.slice('/dev/'.length), {
      ...{ dev_path, parent: 'vda', parent_dev_path: '/dev/vda', type: 'partition', device_path: '', name },
      ...{ offset: 0, size: 1 << 20, pretty_size: '1 MiB', partition_label: label },
    })
  partition('META', '/dev/vda4', 'talosmeta')
  if (name !== undefined) partition('STATE', '/dev/vda5', name)
  return { disks: store.list(Disk), volumes: store.list(DiscoveredVolume), system: 'vda' }
}

test('STATE is missing if wiped before use, and failed if its partition disappeared', async () => {
  const settling = new Settling(
    { log: silent } as unknown as Machine,
    new EncryptedVolumes({ clock: systemClock } as unknown as Machine, {}),
  )
  const config = stateVolume(undefined, {})
  const settle = (name?: string) => settling.settle('STATE', config, { found: found(name), inUse: false, mayMake: false })
  expect((await settle('xfs')).phase).toBe('located')
  expect((await settle('')).phase).toBe('missing')
  expect((await settle('xfs')).phase).toBe('located')
  await expect(settle()).rejects.toThrow('volume "STATE" was on /dev/vda5, which no longer exists')
})

test('a medium with images is located before an installation too, and missing when it is taken out', async () => {
  const empty = { disks: [], volumes: [] }
  const disk = { io_size: 512, sector_size: 512, readonly: true, cdrom: true, size: 1 << 20, pretty_size: '1 MiB', dev_path: '/dev/sr0' }
  const store = new Store()
  store.put(Disk, 'sr0', disk)
  store.put(DiscoveredVolume, 'sr0', {
    ...{ dev_path: '/dev/sr0', type: 'disk', device_path: '', name: 'iso9660', label: 'TALOS_V1_13_9' },
    ...{ offset: 0, size: 1 << 20, pretty_size: '1 MiB' },
  })
  const settling = new Settling(
    { log: silent } as unknown as Machine,
    new EncryptedVolumes({ clock: systemClock } as unknown as Machine, {}),
  )
  const settle = (found: Parameters<typeof settling.settle>[2]['found']) =>
    settling.settle('IMAGECACHE-ISO', imageCacheMedium, { found, inUse: false, mayMake: false })
  expect((await settle(empty)).phase).toBe('missing')
  const found = await settle({ disks: store.list(Disk), volumes: store.list(DiscoveredVolume) })
  expect(found).toMatchObject({ phase: 'located', location: '/dev/sr0' })
  expect((await settle(empty)).phase).toBe('missing')
})

test.each(['lvm2-pv', 'linux_raid_member'])(
  'a disk with %s is neither partitioned nor mounted, and a line explains what to do',
  async (name) => {
    const image = Buffer.alloc(1 << 20)
    if (name === 'linux_raid_member') image.set(raidSuperblock('1.2', image.length).bytes, 4096)
    else {
      image.write('LABELONE', 512, 'latin1')
      image.write('LVM2 001', 512 + 24, 'latin1')
    }
    const device = {
      ...{ size: image.length, sectorSize: 512 },
      read: async (offset: number, length: number) => image.subarray(offset, offset + length),
      close: async () => {},
    }
    const machine = { log: silent, kernel: { block: { openDevice: async () => device } } } as unknown as Machine
    const disks = [{ spec: { dev_path: '/dev/vdb' } }] as unknown as Parameters<typeof provision>[3]
    await expect(provision(machine, 'u-data', { minSize: 1 << 16 } as Parameters<typeof provision>[2], disks)).rejects.toThrow(
      /^no disk for volume "u-data": \/dev\/vdb holds \w.* \(to give it up: "talosctl wipe disk vdb"\)$/,
    )
    const mounted = { provisioning: {}, mount: {} } as Parameters<typeof prepare>[2]
    await expect(prepare(machine, 'e-data', mounted, '/dev/vdb')).rejects.toThrow(
      `volume "e-data" must be a file system, but /dev/vdb holds ${name}: nothing was changed; to give it up run "talosctl wipe disk vdb"`,
    )
  },
)
