import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silent } from '../../../../src/cosi/log.ts'
import { Store } from '../../../../src/cosi/store.ts'
import * as files from '../../../../src/linux/fs/files.ts'
import { readDiskTable, writeDiskTable } from '../../../../src/os/block/device.ts'
import { Disk } from '../../../../src/os/block/resources/disk.ts'
import { SystemDisk } from '../../../../src/os/block/resources/system-disk.ts'
import { completeInstallation, installOn, refuseInstall } from '../../../../src/os/lifecycle/install/install-system.ts'
import { ownParameters } from '../../../../src/os/lifecycle/install/layout.ts'
import { folderFiles } from '../../../../src/os/lifecycle/release/installer-image.ts'
import { openRelease, slotRelease } from '../../../../src/os/lifecycle/release/release.ts'
import { withBootLoader } from '../../../../src/os/lifecycle/slots/boot-disk.ts'
import { SystemChanges } from '../../../../src/os/lifecycle/system-changes.ts'
import { FatVolume } from '../../../../src/wire/fat/volume.ts'
import { SparseDisk } from '../../../support/sparse-disk.ts'
import { releaseFiles, signingKey, writeTree } from '../release/installer.ts'
import { blockDevices } from './block-devices.ts'

const folder = mkdtempSync(join(tmpdir(), 'ichor-install-'))
afterAll(() => rmSync(folder, { recursive: true }))
const key = signingKey()
writeTree(join(folder, 'one'), releaseFiles('v1.13.0', key))
writeTree(join(folder, 'two'), releaseFiles('v1.13.1', key))
const open = (name: string) => openRelease(folderFiles({ files }, join(folder, name)), key.publicKey, 'amd64')

const gibibyte = 2 ** 30
const silence = { signal: new AbortController().signal, report: () => {} }

/** A machine with one disk; nothing else exists on it. */
function machine({ uefi, size = 8 * gibibyte, sectorSize = 512 }: { uefi: boolean; size?: number; sectorSize?: number }) {
  const disk = new SparseDisk(size, sectorSize)
  const block = blockDevices('/dev/vda', disk)
  const store = new Store()
  store.put(Disk, 'vda', {
    dev_path: '/dev/vda',
    size,
    pretty_size: `${size / gibibyte} GiB`,
    io_size: sectorSize,
    sector_size: sectorSize,
    readonly: false,
    cdrom: false,
    model: 'Test disk',
    serial: 'S1',
  })
  const used: string[] = []
  const recorded: string[] = []
  const kernel = {
    mode: 'metal',
    block,
    files: {
      exists: (path: string) => uefi && path === '/sys/firmware/efi',
      writeInto: (path: string, text: string) => void recorded.push(`${path} ${text}`),
      readTextIfThere: () => 'console=ttyS0 talos.config=http://10.0.0.1/config quiet',
    },
  }
  const parts = {
    kernel,
    store,
    log: silent,
    systemChanges: new SystemChanges(),
    meta: { use: async (device: string) => void used.push(device) },
  }
  return { disk, block, store, used, recorded, parts: parts as unknown as Parameters<typeof installOn>[0] }
}

/** The code of a first sector that hands the start on to the next disk. */
const startsNothing = '\xcd\x18\xeb\xfe'

/** Whether there is what a firmware looks for by itself. */
async function startsByUefi(block: ReturnType<typeof blockDevices>): Promise<boolean> {
  return (await FatVolume.open(await block.openDevice('/dev/vda1'))).has('/EFI/BOOT/BOOTX64.EFI')
}

/** The other slot is written and tried. */
async function takesAnUpgrade(parts: ReturnType<typeof machine>['parts'], store: Store): Promise<void> {
  store.put(SystemDisk, 'system-disk', { diskID: 'vda', devPath: '/dev/vda' })
  await withBootLoader(parts, async (loader) => {
    await loader.write('b', await slotRelease(await open('two')))
    await loader.try('b')
    expect(await loader.state()).toMatchObject({ good: 'a', next: 'b', trial: { slot: 'b', left: 3 } })
  })
}

describe.each([
  { uefi: true, labels: ['EFI', 'META'], meta: '/dev/vda2', kind: 'systemd-boot' },
  { uefi: false, labels: ['EFI', 'BIOS', 'BOOT', 'META'], meta: '/dev/vda4', kind: 'grub' },
] as const)('with UEFI: $uefi', ({ uefi, labels, meta, kind }) => {
  test('an empty disk is partitioned, and boots the release in slot A', async () => {
    const { parts, store, used, recorded, disk, block } = machine({ uefi })
    const plan = await installOn(parts, { disk: '/dev/vda' }, await open('one'), silence)
    expect(plan.partitions.map(({ label }) => label)).toEqual([...labels])
    expect(used).toEqual([meta])
    expect(recorded).toEqual(['/sys/class/block/vda/uevent change'])
    const device = await parts.kernel.block.openDevice('/dev/vda')
    expect((await readDiskTable(device))?.partitions.map(({ name }) => name)).toEqual([...labels])
    store.put(SystemDisk, 'system-disk', { diskID: 'vda', devPath: '/dev/vda' })
    await withBootLoader(parts, async (loader) => {
      expect(loader.kind).toBe(kind)
      expect(await loader.state()).toMatchObject({ good: 'a', next: 'a', slots: { a: { version: 'v1.13.0' } } })
    })
    // The master boot record starts GRUB on a BIOS machine, and keeps its signature.
    expect(Buffer.from(disk.read(0, 4)).toString('latin1')).toBe(uefi ? startsNothing : 'bbbb')
    expect(await startsByUefi(block)).toBe(uefi)
    expect(Buffer.from(disk.read(510, 2)).toString('hex')).toBe('55aa')
  })

  test("an upgrade goes to the other slot and keeps the machine's own parameters", async () => {
    const { parts, store } = machine({ uefi })
    await installOn(parts, { disk: '/dev/vda', extraKernelArgs: ['quiet=1'] }, await open('one'), silence)
    await takesAnUpgrade(parts, store)
  })

  test('a non-empty disk is left alone unless wiping is allowed', async () => {
    const { parts, block } = machine({ uefi })
    await installOn(parts, { disk: '/dev/vda' }, await open('one'), silence)
    block.writes = 0
    await expect(installOn(parts, { disk: '/dev/vda' }, await open('one'), silence)).rejects.toThrow(
      /it holds partitions .*META.*nothing was changed/,
    )
    expect(block.writes).toBe(0)
    await installOn(parts, { disk: '/dev/vda', wipe: true }, await open('two'), silence)
    expect(block.writes).toBeGreaterThan(0)
  })
})

test('a good release renews GRUB on the disk of the installation, and stays the active one of an old BIOS', async () => {
  const { parts, store, disk } = machine({ uefi: false })
  await installOn(parts, { disk: '/dev/vda', legacyBIOSSupport: true }, await open('one'), silence)
  const start = () => Number(Buffer.from(disk.read(0x5c, 8)).readBigUInt64LE())
  const [first, rest] = [start(), Buffer.from(disk.read(440, 72)).toString('hex')]
  await takesAnUpgrade(parts, store)
  await withBootLoader(parts, async (loader) => {
    await loader.keep('b')
    expect(await loader.renewal?.settle()).toBe('renewed')
  })
  expect((start() - first) * 512).toBe(1 << 19)
  expect(Buffer.from(disk.read(start() * 512, 32)).toString()).toStartWith('grub/core.img v1.13.1;')
  expect(Buffer.from(disk.read(440, 72)).toString('hex')).toBe(rest)
})

test('a disk with 4 KiB sectors is partitioned in its own sectors, for UEFI', async () => {
  const { parts, store, disk } = machine({ uefi: true, sectorSize: 4096 })
  await installOn(parts, { disk: '/dev/vda' }, await open('one'), silence)
  const table = await readDiskTable(await parts.kernel.block.openDevice('/dev/vda'))
  expect(table).toMatchObject({ sectorSize: 4096, partitions: [{ name: 'EFI', first: 256 }, { name: 'META' }] })
  expect(Buffer.from(disk.read(4096, 8)).toString()).toBe('EFI PART')
  // The file system's sectors are the disk's, or no kernel and no firmware reads it.
  expect(Buffer.from(disk.read(1 << 20, 512)).readUInt16LE(11)).toBe(4096)
  await takesAnUpgrade(parts, store)
})

test('a disk with 4 KiB sectors is refused with BIOS, which cannot boot from it', async () => {
  const { parts } = machine({ uefi: false, sectorSize: 4096 })
  expect(await refuseInstall(parts, { disk: '/dev/vda' })).toContain('start this machine by UEFI, or choose another disk')
})

const namesOn = async (block: Parameters<typeof startsByUefi>[0]) =>
  (await readDiskTable(await block.openDevice('/dev/vda')))?.partitions.map(({ name }) => name)

test.each([{ uefi: true }, { uefi: false }])(
  'an interrupted installation does not boot, and is repeated without requiring wipe ($uefi)',
  async ({ uefi }) => {
    const { parts, block, disk } = machine({ uefi })
    const tired = { ...parts, meta: { use: () => Promise.reject(new Error('the power is gone')) } } as unknown as typeof parts
    await expect(installOn(tired, { disk: '/dev/vda' }, await open('one'), silence)).rejects.toThrow('the power is gone')
    expect((await namesOn(block))?.at(-1)).toBe('INSTALLING')
    expect(Buffer.from(disk.read(0, 4)).toString('latin1')).toBe(startsNothing)
    expect(await startsByUefi(block)).toBe(false)
    await installOn(parts, { disk: '/dev/vda' }, await open('one'), silence)
    expect((await namesOn(block))?.at(-1)).toBe('META')
  },
)

test('an installation interrupted before its last step is completed only by the machine that boots from it', async () => {
  const { parts, block } = machine({ uefi: true })
  await installOn(parts, { disk: '/dev/vda' }, await open('one'), silence)
  const device = await block.openDevice('/dev/vda')
  const table = (await readDiskTable(device))!
  table.partitions.at(-1)!.name = 'INSTALLING'
  await writeDiskTable(device, table)
  const uevents: Record<string, string> = {
    vda: 'DEVTYPE=disk\n',
    vda1: 'DEVTYPE=partition\nPARTN=1\nPARTNAME=EFI\n',
    vda2: 'DEVTYPE=partition\nPARTN=2\nPARTNAME=INSTALLING\n',
  }
  const started = (commandLine: string, source: string) =>
    completeInstallation({
      log: silent,
      kernel: {
        ...parts.kernel,
        files: {
          ...parts.kernel.files,
          exists: () => false,
          list: () => Object.keys(uevents),
          readlink: (path: string) => `../../devices/pci/block/vda/${path.endsWith('vda') ? '' : path.split('/').at(-1)}`,
          readTextIfThere: (path: string) =>
            ({ '/proc/cmdline': commandLine, '/run/ichor/source': source })[path] ?? uevents[path.split('/').at(-2) ?? ''],
        },
      } as unknown as typeof parts.kernel,
    })
  expect(await started('quiet', '/dev/sr0 iso9660\n')).toBeUndefined()
  expect(await started('quiet', '/dev/vda1 vfat\n')).toBeUndefined()
  expect(await started('ichor.slot=a', 'initramfs\n')).toBeUndefined()
  expect((await namesOn(block))?.at(-1)).toBe('INSTALLING')
  expect(await started('ichor.slot=a', '/dev/vda1 vfat\n')).toBe('vda')
  expect((await namesOn(block))?.at(-1)).toBe('META')
})

test('a damaged release is refused before a byte is written', async () => {
  writeTree(join(folder, 'damaged'), releaseFiles('v1.13.0', key).set('vmlinuz.efi', Buffer.alloc(5000, 'x')))
  const { parts, block } = machine({ uefi: true })
  await expect(installOn(parts, { disk: '/dev/vda' }, await open('damaged'), silence)).rejects.toThrow('"vmlinuz.efi" is damaged')
  expect(block.writes).toBe(0)
})

test('a configuration without a matching disk is refused with the list of disks', async () => {
  const { parts } = machine({ uefi: true })
  expect(await refuseInstall(parts, { disk: '/dev/sdz' })).toMatch(
    /there is no disk "\/dev\/sdz".*\/dev\/vda \(model "Test disk", serial "S1", 8 GiB, holds nothing\)/,
  )
  expect(await refuseInstall(parts, undefined)).toContain('names none')
  expect(await refuseInstall(parts, { disk: '/dev/vda' })).toBeUndefined()
})

test('an unreadable disk is refused: it may hold anything', async () => {
  const { parts, disk } = machine({ uefi: true })
  const block = { openDevice: () => Promise.reject(new Error('read "/dev/vda": EIO')) }
  const blind = { ...parts, kernel: { ...parts.kernel, block } } as unknown as typeof parts
  await expect(installOn(blind, { disk: '/dev/vda' }, await open('one'), silence)).rejects.toThrow('its content cannot be read')
  expect(disk.size).toBe(8 * gibibyte)
})

test('a disk that is too small is refused', async () => {
  const { parts } = machine({ uefi: true, size: 4 * gibibyte })
  expect(await refuseInstall(parts, { disk: '/dev/vda' })).toContain('6.0 GiB are needed')
})

test('machine-specific parameters are carried over, others are not', () => {
  expect(ownParameters('console=ttyS0 quiet talos.config=http://a/b net.ifnames=0', ['extra=1'])).toEqual([
    'console=ttyS0',
    'talos.config=http://a/b',
    'net.ifnames=0',
    'extra=1',
  ])
})
