import { describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import * as files from '../../../src/linux/fs/files.ts'
import { disks, wipeRefused } from '../../../src/os/block/api/disks.ts'
import { observeDevices, observeDisks } from '../../../src/os/block/controllers/devices.ts'
import { observeSystemDisk } from '../../../src/os/block/controllers/system-disk.ts'
import { BlockDevice } from '../../../src/os/block/resources/block-device.ts'
import { DiscoveredVolume } from '../../../src/os/block/resources/discovered-volume.ts'
import { Disk } from '../../../src/os/block/resources/disk.ts'
import { SystemDisk } from '../../../src/os/block/resources/system-disk.ts'
import type { SysFiles } from '../../../src/os/block/sysfs.ts'
import type { storage } from '../../../src/rpc/messages.ts'

const uevent = { async *watchDevices() {} }

async function observed(kernel: SysFiles) {
  const store = new Store()
  const runtime = new Runtime(store, { log: silent })
  runtime.register(observeDevices({ files: kernel, uevent }), observeDisks({ files: kernel }), observeSystemDisk)
  store.put(DiscoveredVolume, 'nvme0n1p2', {
    ...{
      dev_path: '/dev/nvme0n1p2',
      type: 'partition',
      device_path: '',
      parent: 'nvme0n1',
      offset: 0,
      size: 1 << 20,
      pretty_size: '1.0 MB',
    },
    ...{ name: 'talosmeta', partition_label: 'META' },
  })
  runtime.start()
  await runtime.settled()
  runtime.stop()
  return store
}

const links: Record<string, string> = {
  nvme0n1: '../../devices/pci0000:00/0000:00:09.0/nvme/nvme0/nvme0n1',
  nvme0n1p1: '../../devices/pci0000:00/0000:00:09.0/nvme/nvme0/nvme0n1/nvme0n1p1',
  nvme0n1p2: '../../devices/pci0000:00/0000:00:09.0/nvme/nvme0/nvme0n1/nvme0n1p2',
  sda: '../../devices/pci0000:00/0000:00:07.0/ata1/host0/target0:0:0/0:0:0:0/block/sda',
  vda: '../../devices/pci0000:00/0000:00:02.0/virtio1/block/vda',
  'dm-0': '../../devices/virtual/block/dm-0',
  loop3: '../../devices/virtual/block/loop3',
  zram0: '../../devices/virtual/block/zram0',
}
const texts: Record<string, string> = {
  'nvme0n1/uevent': 'MAJOR=259\nMINOR=0\nDEVNAME=nvme0n1\nDEVTYPE=disk\nDISKSEQ=1\n',
  'nvme0n1/size': '20480000\n',
  'nvme0n1/ro': '0\n',
  'nvme0n1/wwid': 'nvme.1b36-6465\n',
  'nvme0n1/device/model': 'Solid  \n',
  'nvme0n1/device/serial': 'deadbeef            \n',
  'nvme0n1/queue/logical_block_size': '512\n',
  'nvme0n1/queue/minimum_io_size': '512\n',
  'nvme0n1/queue/optimal_io_size': '0\n',
  'nvme0n1/queue/rotational': '0\n',
  'nvme0n1p1/uevent': 'MAJOR=259\nMINOR=1\nDEVNAME=nvme0n1p1\nDEVTYPE=partition\nDISKSEQ=1\nPARTN=1\nPARTNAME=EFI\n',
  'nvme0n1p1/size': '2048\n',
  'nvme0n1p2/uevent': 'MAJOR=259\nMINOR=2\nDEVNAME=nvme0n1p2\nDEVTYPE=partition\nDISKSEQ=1\nPARTN=2\nPARTNAME=META\n',
  'nvme0n1p2/size': '2048\n',
  'sda/uevent': 'MAJOR=8\nMINOR=0\nDEVNAME=sda\nDEVTYPE=disk\nDISKSEQ=2\n',
  'sda/size': '7814037168\n',
  'sda/ro': '1\n',
  'sda/queue/rotational': '1\n',
  'sda/queue/optimal_io_size': '4096\n',
  'vda/uevent': 'MAJOR=254\nMINOR=0\nDEVNAME=vda\nDEVTYPE=disk\nDISKSEQ=9\n',
  'vda/size': '12500000\n',
  'dm-0/uevent': 'MAJOR=253\nMINOR=0\nDEVNAME=dm-0\nDEVTYPE=disk\nDISKSEQ=12\n',
  'dm-0/size': '16\n',
  'loop3/uevent': 'MAJOR=7\nMINOR=3\nDEVNAME=loop3\nDEVTYPE=disk\nDISKSEQ=4\n',
  'loop3/size': '0\n',
  'zram0/uevent': 'MAJOR=251\nMINOR=0\nDEVNAME=zram0\nDEVTYPE=disk\nDISKSEQ=5\n',
  'zram0/size': '4096\n',
}
const below = (path: string) => path.replace('/sys/class/block/', '')
const recorded: SysFiles = {
  list: (path) => (path === '/sys/class/block' ? [...Object.keys(links), 'gone'] : path.endsWith('dm-0/slaves') ? ['sda'] : []),
  exists: (path) => path.endsWith('dm-0/slaves'),
  readlink(path) {
    const link = links[below(path)]
    if (!link) throw new Error('ENOENT')
    return link
  },
  readTextIfThere: (path) => texts[below(path)],
}

describe('a machine’s block devices', async () => {
  const store = await observed(recorded)

  test('are disks and partitions with their bus paths', () => {
    expect(
      store
        .list(BlockDevice)
        .map(({ metadata }) => metadata.id)
        .sort(),
    ).toEqual(Object.keys(links).sort())
    expect(store.get(BlockDevice, 'nvme0n1p2')?.spec).toEqual({
      type: 'partition',
      major: 259,
      minor: 2,
      partitionName: 'META',
      partitionNumber: 2,
      devicePath: '/devices/pci0000:00/0000:00:09.0/nvme/nvme0/nvme0n1/nvme0n1p2',
      generation: 1,
      parent: 'nvme0n1',
    })
    expect(store.get(BlockDevice, 'dm-0')?.spec.secondaries).toEqual(['sda'])
  })

  test('that are non-empty disks are published completely', () => {
    expect(
      store
        .list(Disk)
        .map(({ metadata }) => metadata.id)
        .sort(),
    ).toEqual(['dm-0', 'nvme0n1', 'sda', 'vda'])
    expect(store.get(Disk, 'nvme0n1')?.spec).toEqual({
      dev_path: '/dev/nvme0n1',
      size: 10_485_760_000,
      pretty_size: '10 GB',
      io_size: 512,
      sector_size: 512,
      readonly: false,
      cdrom: false,
      model: 'Solid',
      serial: 'deadbeef',
      wwid: 'nvme.1b36-6465',
      bus_path: '/pci0000:00/0000:00:09.0/nvme',
      sub_system: '/sys/class/block',
      transport: 'nvme',
    })
    expect(store.get(Disk, 'sda')?.spec).toMatchObject({
      pretty_size: '4.0 TB',
      readonly: true,
      rotational: true,
      transport: 'sata',
      io_size: 4096,
    })
    expect(store.get(Disk, 'vda')?.spec).toMatchObject({ pretty_size: '6.4 GB', transport: 'virtio', bus_path: '/pci0000:00/0000:00:02.0' })
    expect(store.get(Disk, 'dm-0')?.spec).toMatchObject({ pretty_size: '8.2 kB', secondary_disks: ['sda'] })
  })

  test('hold the system on the disk with META', () => {
    expect(store.get(SystemDisk, 'system-disk')?.spec).toEqual({ diskID: 'nvme0n1', devPath: '/dev/nvme0n1' })
  })

  test('are listed by the API', () => {
    const reply = disks.handle({} as never, { store } as never) as storage.DisksResponse
    const listed = reply.messages[0]?.disks.map(({ deviceName, type, systemDisk }) => [deviceName, type, systemDisk]).sort()
    expect(listed).toEqual([
      ['/dev/dm-0', 1, false],
      ['/dev/nvme0n1', 3, true],
      ['/dev/sda', 2, false],
      ['/dev/vda', 1, false],
    ])
  })
})

test('the disks of the test machine are found', async () => {
  const store = await observed(files)
  const here = readdirSync('/sys/class/block').sort()
  expect(
    store
      .list(BlockDevice)
      .map(({ metadata }) => metadata.id)
      .sort(),
  ).toEqual(here)
  for (const { metadata, spec } of store.list(Disk)) {
    expect(spec.size).toBe(Number(await Bun.file(`/sys/class/block/${metadata.id}/size`).text()) * 512)
    expect(spec.sector_size).toBeGreaterThanOrEqual(512)
  }
})

test('a container node refuses to wipe the disks of its host', () => {
  const ask = () => wipeRefused.handle({ devices: [{ device: 'vda' }] } as never, {} as never)
  expect(ask).toThrow('wipe "vda": method is not supported in container mode')
})
