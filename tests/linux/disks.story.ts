/** Disks of our own, as loop devices: laid out, judged by sgdisk and the kernel, changed while in use, grown, swapped to. */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statfsSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silent } from '../../src/cosi/log.ts'
import * as block from '../../src/linux/block/device.ts'
import { type AttachedLoop, attachLoop } from '../../src/linux/block/loop.ts'
import * as files from '../../src/linux/fs/files.ts'
import * as mount from '../../src/linux/fs/mount.ts'
import type { Machine } from '../../src/os/area.ts'
import { partitionPath, probeDevice, readDiskTable } from '../../src/os/block/device.ts'
import { DiskOccupied, type DiskPlan, DiskTooSmall, layOutDisk } from '../../src/os/block/layout.ts'
import { keepConfig } from '../../src/os/config/keep.ts'
import { spawn } from '../../src/supervise/spawn.ts'

const mebibyte = 1 << 20
const parts = { kernel: { block } as unknown as Machine['kernel'], spawn, log: silent }
const plan: DiskPlan = {
  partitions: [
    // FAT32 takes so much on sectors of 4 KiB.
    { label: 'EFI', type: 'efi', size: 260 * mebibyte, format: { type: 'vfat', label: 'EFI' } },
    { label: 'BIOS', type: 'bios', size: mebibyte },
    { label: 'META', type: 'linux', size: mebibyte },
    { label: 'STATE', type: 'linux', size: 100 * mebibyte, format: { type: 'xfs', label: 'STATE' } },
    { label: 'EPHEMERAL', type: 'linux', format: { type: 'xfs', label: 'EPHEMERAL' } },
  ],
}

let folder: string
let loop: AttachedLoop

/** A disk of so many mebibytes. */
function disk(size: number, blockSize = 512): string {
  const path = join(folder, 'disk.img')
  writeFileSync(path, '')
  truncateSync(path, size * mebibyte)
  loop = attachLoop(path, { autoclear: true, partitionScan: true, blockSize })
  return loop.device
}

/** A partition with XFS, mounted: the only one of its disk. */
async function mountedXfs(device: string, label: string, size: number) {
  const plan: DiskPlan = { partitions: [{ label, type: 'linux', size: size * mebibyte, format: { type: 'xfs' } }] }
  const [partition] = await layOutDisk(parts, device, plan, { wipe: false })
  const target = join(folder, 'mounted')
  mkdirSync(target)
  mount.mount({ source: partition!.device, target, type: 'xfs' })
  return { partition: partition!, target }
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ichor-disks-'))
})
afterEach(() => {
  mount.umountTree(folder)
  loop.release()
  rmSync(folder, { recursive: true })
})

async function run(...argv: string[]): Promise<string> {
  const child = Bun.spawn(argv, { stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  if ((await child.exited) !== 0) throw new Error(`${argv.join(' ')}: ${stderr}${stdout}`)
  return stdout
}

describe.each([512, 4096])('a disk with sectors of %i bytes', (sectorSize) => {
  test('is laid out as sgdisk and the kernel read it', async () => {
    const device = disk(1024, sectorSize)
    const made = await layOutDisk(parts, device, plan, { wipe: false })
    expect(made.map(({ label, index }) => `${index} ${label}`)).toEqual(['1 EFI', '2 BIOS', '3 META', '4 STATE', '5 EPHEMERAL'])
    expect(made.every(({ offset }) => offset % mebibyte === 0)).toBe(true)
    const judged = await run('sgdisk', '-v', '-p', device)
    expect(judged).toContain('No problems found')
    for (const line of ['EF00  EFI', 'EF02  BIOS', '8300  META', '8300  STATE', '8300  EPHEMERAL']) expect(judged).toContain(line)
    expect(block.kernelPartitions(device).sort((a, b) => a.index - b.index)).toEqual(
      made.map(({ index, offset, size }) => ({ index, offset, size })),
    )
    const found = await Promise.all(made.map(async (partition) => (await probeDevice(block, partition.device)).found?.name))
    expect(found).toEqual(['vfat', undefined, undefined, 'xfs', 'xfs'])
  })
})

test('a table that sgdisk made is read, and the table written over it is accepted by sgdisk', async () => {
  const device = disk(256)
  await run('sgdisk', '-n', '1:0:+20M', '-t', '1:8200', '-c', '1:theirs', '-n', '3:0:+5M', '-A', '3:set:2', device)
  const open = await block.openDevice(device)
  const table = await readDiskTable(open)
  await open.close()
  expect(table?.partitions.map(({ index, name, attributes }) => [index, name, attributes])).toEqual([
    [1, 'theirs', 0n],
    [3, '', 4n],
  ])
  await expect(layOutDisk(parts, device, plan, { wipe: false })).rejects.toThrow(
    /holds partitions theirs 21 MB, 3 5\.2 MB; nothing was changed/,
  )
  await expect(layOutDisk(parts, device, plan, { wipe: false })).rejects.toBeInstanceOf(DiskOccupied)
})

test('an occupied disk is partitioned when wiping is allowed, and no old signature is found on it', async () => {
  const device = disk(1024)
  await run('mkfs.ext4', '-q', '-F', device)
  await expect(layOutDisk(parts, device, plan, { wipe: false })).rejects.toThrow('holds extfs')
  const [, , meta] = await layOutDisk(parts, device, plan, { wipe: true })
  expect((await probeDevice(block, device)).found?.name).toBe('gpt')
  const open = await block.openDevice(meta!.device, { write: true })
  await open.write(0, Buffer.from('of old'))
  await open.flush()
  await open.close()
  await layOutDisk(parts, device, plan, { wipe: true })
  const again = await block.openDevice(meta!.device)
  expect(Buffer.from(await again.read(0, 6))).toEqual(Buffer.alloc(6))
  await again.close()
  expect(await run('sgdisk', '-v', device)).toContain('No problems found')
})

test('a disk that is too small or in use is refused before anything is written', async () => {
  const device = disk(150)
  await expect(layOutDisk(parts, device, plan, { wipe: true })).rejects.toBeInstanceOf(DiskTooSmall)
  expect((await probeDevice(block, device)).found).toBeUndefined()
  await run('mkfs.ext4', '-q', '-F', device)
  const target = join(folder, 'mounted')
  mkdirSync(target)
  mount.mount({ source: device, target, type: 'ext4' })
  await expect(layOutDisk(parts, device, plan, { wipe: true })).rejects.toThrow('EBUSY')
})

test('a mounted XFS grows with its partition', async () => {
  const device = disk(900)
  const { partition, target } = await mountedXfs(device, 'DATA', 320)
  expect(block.growXfs(target, partition.size)).toBe(false)
  await block.syncPartitions(device, [{ index: 1, offset: partition.offset, size: 800 * mebibyte }])
  expect((await probeDevice(block, partition.device)).size).toBe(800 * mebibyte)
  const before = statfsSync(target).blocks
  expect(block.growXfs(target, 800 * mebibyte)).toBe(true)
  expect(statfsSync(target).blocks).toBeGreaterThan(before * 2)
})

test('on a full STATE a configuration is refused, and the stored one stays intact', async () => {
  const device = disk(220)
  const { target } = await mountedXfs(device, 'STATE', 100)
  const at = (path: string) => path.replace('/system/state', target)
  const onState = {
    readTextIfThere: (path: string) => files.readTextIfThere(at(path)),
    writeAtomic: (path: string, data: string | Uint8Array) => files.writeAtomic(at(path), data),
  }
  await keepConfig(onState, 'version: v1alpha1 # kept\n')
  const full = openSync(join(target, 'full'), 'w')
  for (const piece of [mebibyte, 4096])
    for (;;)
      try {
        if (writeSync(full, new Uint8Array(piece)) < piece) break
      } catch (error) {
        expect((error as NodeJS.ErrnoException).code).toBe('ENOSPC')
        break
      }
  closeSync(full)
  await expect(keepConfig(onState, `version: v1alpha1 # new\n${'#\n'.repeat(100_000)}`)).rejects.toThrow('ENOSPC')
  expect(readFileSync(join(target, 'config.yaml'), 'utf8')).toBe('version: v1alpha1 # kept\n')
  rmSync(join(target, 'full'))
  await keepConfig(onState, 'version: v1alpha1 # new\n')
  expect(readFileSync(join(target, 'config.yaml'), 'utf8')).toBe('version: v1alpha1 # new\n')
})

test('a partition is added and removed while another one is mounted', async () => {
  const device = disk(900)
  const { partition } = await mountedXfs(device, 'DATA', 320)
  const one = { index: 1, offset: partition.offset, size: partition.size }
  const two = { index: 2, offset: 400 * mebibyte, size: 10 * mebibyte }
  await block.syncPartitions(device, [one, two])
  expect(existsSync(partitionPath(device, 2))).toBe(true)
  await block.syncPartitions(device, [one])
  expect(block.kernelPartitions(device)).toEqual([one])
  await expect(block.syncPartitions(device, [], { timeout: 0 })).rejects.toThrow('EBUSY')
})

test('a swap area is enabled and disabled', async () => {
  const device = disk(64)
  const [area] = await layOutDisk(
    parts,
    device,
    { partitions: [{ label: 's-fast', type: 'swap', format: { type: 'swap', label: 's-fast' } }] },
    { wipe: false },
  )
  block.swapOn(area!.device)
  try {
    expect(readFileSync('/proc/swaps', 'utf8')).toContain(area!.device)
  } finally {
    block.swapOff(area!.device)
  }
  expect(readFileSync('/proc/swaps', 'utf8')).not.toContain(area!.device)
})

test('every byte of a device is zero after it was zeroed', async () => {
  const device = disk(40)
  const open = await block.openDevice(device, { write: true })
  await open.write(20 * mebibyte + 5, Buffer.from('something'))
  await open.flush()
  await open.close()
  await block.zeroOut(device)
  const again = await block.openDevice(device)
  expect((await again.read(0, 40 * mebibyte)).every((byte) => byte === 0)).toBe(true)
  await again.close()
})
