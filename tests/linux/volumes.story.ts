/** Volumes from an empty disk to a machine that starts again: real disks, a real store, everything mounted below a folder of our own. */
import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  statfsSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { silent } from '../../src/cosi/log.ts'
import { Runtime } from '../../src/cosi/runtime.ts'
import { Store } from '../../src/cosi/store.ts'
import * as block from '../../src/linux/block/device.ts'
import { type AttachedLoop, attachLoop } from '../../src/linux/block/loop.ts'
import * as uevent from '../../src/linux/device/uevent.ts'
import * as files from '../../src/linux/fs/files.ts'
import * as mount from '../../src/linux/fs/mount.ts'
import * as selinux from '../../src/linux/process/selinux.ts'
import type { Machine } from '../../src/os/area.ts'
import { wipeDevices } from '../../src/os/block/api/wipe.ts'
import { block as area } from '../../src/os/block/block.ts'
import { kernelView, probeDevice, readDiskTable } from '../../src/os/block/device.ts'
import { type DiskPlan, layOutDisk } from '../../src/os/block/layout.ts'
import { Meta } from '../../src/os/block/meta/meta.ts'
import { DiscoveredVolume } from '../../src/os/block/resources/discovered-volume.ts'
import { SwapStatus } from '../../src/os/block/resources/swap-status.ts'
import { SystemDisk } from '../../src/os/block/resources/system-disk.ts'
import { mountId, mountRequest, VolumeMountRequest, VolumeMountStatus } from '../../src/os/block/resources/volume-mount.ts'
import { VolumeStatus } from '../../src/os/block/resources/volume-status.ts'
import { spaceReserve } from '../../src/os/block/space-reserve.ts'
import { beginVolumes, endVolumes, mountVolume } from '../../src/os/block/volumes/requests.ts'
import { MachineConfig } from '../../src/os/config/resources/machine-config.ts'
import { fullDisks } from '../../src/os/diagnosis/outside.ts'
import type { Kernel } from '../../src/os/kernel.ts'
import { DevicesStatus } from '../../src/os/runtime/resources/devices-status.ts'
import { spawn } from '../../src/supervise/spawn.ts'
import { within } from '../../src/timing/within.ts'

const mebibyte = 1 << 20
const timeout = 60_000
const folder = mkdtempSync(join(tmpdir(), 'ichor-volumes-'))
const root = join(folder, 'root')
const images = ['system', 'data'].map((name) => join(folder, `${name}.img`))
let disks: AttachedLoop[] = []

let reserveChange = Promise.withResolvers<void>()

/** Takes or gives up the reserve of EPHEMERAL, which a test may wait for. */
function reserveChanges(change: () => void): void {
  change()
  reserveChange.resolve()
}

/** What the disks are on this machine: nothing else of it is looked at, and nothing is mounted but below our folder. */
function kernelInterface(): Kernel {
  const ours = (name: string) => disks.some(({ device }) => name === basename(device) || name.startsWith(`${basename(device)}p`))
  const at = (path: string) => (/^\/(sys|dev|proc)\//.test(path) ? path : `${root}${path}`)
  return {
    mode: 'metal',
    block: { ...block, growXfs: (target: string, size: number) => block.growXfs(at(target), size) },
    uevent,
    files: {
      ...files,
      list: (path) => (path === '/sys/class/block' ? files.list(path).filter(ours) : files.list(at(path))),
      exists: (path) => files.exists(at(path)),
      mkdirAll: (path, options) => files.mkdirAll(at(path), options),
      chmod: (path, mode) => files.chmod(at(path), mode),
      lstatIfThere: (path) => files.lstatIfThere(at(path)),
      symlink: (target, path) => files.symlink(target, at(path)),
      statfs: (path) => files.statfs(at(path)),
      allocate: (path, size, options) => reserveChanges(() => files.allocate(at(path), size, options)),
      removeFile: (path) => reserveChanges(() => files.removeFile(at(path))),
    },
    mount: {
      ...mount,
      mount: (request) => mount.mount({ ...request, target: at(request.target), data: request.data?.replaceAll('=/', `=${root}/`) }),
      umountTree: (path, options) => mount.umountTree(at(path), options),
      remount: (path, flags) => mount.remount(at(path), flags),
    },
    selinux: { ...selinux, labelTree: (path, label) => selinux.labelTree(at(path), label) },
  } as Partial<Kernel> as Kernel
}

let running: { runtime: Runtime; store: Store } | undefined

/** A machine that has just been turned on, and has read META where there is one. */
async function powerOn() {
  const store = new Store()
  const runtime = new Runtime(store, { log: silent })
  const kernel = kernelInterface()
  const meta = new Meta({ kernel, store, log: silent })
  const machine = { kernel, store, runtime, log: silent, spawn, meta } as unknown as Machine
  runtime.register(...area.parts!(machine).controllers!)
  runtime.start()
  store.put(DevicesStatus, 'devices', { ready: true })
  beginVolumes(store)
  running = { runtime, store }
  await meta.reload(signal())
  return { store, meta, machine }
}

const signal = () => AbortSignal.timeout(timeout)
const phase = (store: Store, id: string, ...phases: string[]) =>
  store.until(VolumeStatus, id, ({ spec }) => phases.includes(spec.phase), { signal: signal() })

/** Waits until there is no such volume any more. */
async function gone(store: Store, id: string) {
  const { promise, resolve } = Promise.withResolvers<void>()
  const stop = store.subscribe(VolumeStatus, () => !store.get(VolumeStatus, id) && resolve())
  if (!store.get(VolumeStatus, id)) resolve()
  await promise
  stop()
}

async function powerOff() {
  if (!running) return
  await endVolumes(running.store, signal())
  running.runtime.stop()
  running = undefined
}

function configured(...documents: string[]): string {
  return ['version: v1alpha1\nmachine:\n  type: worker\n', ...documents.map((text) => `apiVersion: v1alpha1\n${text}`)].join('---\n')
}

beforeAll(async () => {
  // The folders of the image that become overlays.
  for (const path of ['/etc/cni', '/etc/kubernetes', '/usr/libexec/kubernetes', '/opt']) mkdirSync(`${root}${path}`, { recursive: true })
  for (const [index, image] of images.entries()) {
    writeFileSync(image, '')
    truncateSync(image, [6144, 2048][index]! * mebibyte)
  }
  await attach()
})

async function attach() {
  disks = images.map((image) => attachLoop(image, { autoclear: true, partitionScan: true }))
  // Not every kernel reads these tables by itself.
  for (const { device } of disks) {
    const open = await block.openDevice(device)
    const table = await readDiskTable(open)
    await open.close()
    if (table) await block.syncPartitions(device, kernelView(table))
  }
}

function detach() {
  for (const loop of disks) loop.release()
  disks = []
}

afterEach(powerOff)
afterAll(() => {
  mount.umountTree(folder)
  detach()
  rmSync(folder, { recursive: true })
})

const installed: DiskPlan = {
  partitions: [
    { label: 'EFI', type: 'efi', size: 100 * mebibyte, format: { type: 'vfat', label: 'EFI' } },
    { label: 'META', type: 'linux', size: mebibyte },
  ],
}

const volumes = () => {
  const elsewhere = `'!system_disk && disk.dev_path.startsWith("/dev/loop")'`
  const on = (match: string) => `provisioning:\n  diskSelector:\n    match: ${match}\n`
  return configured(
    `kind: UserVolumeConfig\nname: data\n${on(elsewhere)}  minSize: 320MiB\n  maxSize: 400MiB\n`,
    `kind: UserVolumeConfig\nname: small\n${on(`${elsewhere.slice(0, -1)} && disk.size > 1u * GiB'`)}  maxSize: 64MiB\nfilesystem:\n  type: ext4\n`,
    'kind: UserVolumeConfig\nname: folder\nvolumeType: directory\n',
    `kind: RawVolumeConfig\nname: ceph\n${on(elsewhere)}  minSize: 32MiB\n  maxSize: 32MiB\n`,
    `kind: SwapVolumeConfig\nname: spare\n${on(elsewhere)}  minSize: 16MiB\n  maxSize: 16MiB\n`,
    'kind: ExistingVolumeConfig\nname: efi\ndiscovery:\n  volumeSelector:\n    match: volume.partition_label == "u-small"\n',
    `kind: RawVolumeConfig\nname: huge\n${on(elsewhere)}  minSize: 900GiB\n`,
  )
}

test(
  'a machine without its system on a disk has none of its volumes, and changes no disk',
  async () => {
    const { store } = await powerOn()
    await phase(store, 'META', 'missing')
    await phase(store, 'STATE', 'missing')
    store.put(MachineConfig, 'v1alpha1', volumes())
    await phase(store, 'EPHEMERAL', 'missing')
    await phase(store, 'u-data', 'waiting')
    expect(store.list(DiscoveredVolume).map(({ spec }) => spec.name)).toEqual(['', ''])
  },
  timeout * 2,
)

test(
  'once it is installed META is found, STATE and EPHEMERAL are made, and volumes for workloads beside them',
  async () => {
    const { store, meta, machine } = await powerOn()
    await phase(store, 'STATE', 'missing')
    const disk = disks[0]!.device
    const [, metaPartition] = await layOutDisk(machine, disk, installed, { wipe: false })
    meta.set(12, 'kept')
    await meta.use(metaPartition!.device)
    await phase(store, 'META', 'ready')
    expect((await store.until(SystemDisk, 'system-disk', undefined, { signal: signal() })).spec.devPath).toBe(disk)
    // Nothing is made before there is a configuration.
    expect(store.get(VolumeStatus, 'STATE')?.spec.phase).toBe('missing')
    store.put(MachineConfig, 'v1alpha1', volumes())
    await mountVolume(store, 'STATE', { log: silent, signal: signal() })
    await mountVolume(store, 'EPHEMERAL', { log: silent, signal: signal() })
    const requested = ['u-data', 'u-small', 'u-folder', 's-spare', '/var/lib/kubelet', 'ETCD', '/etc/cni', '/opt']
    for (const id of requested) await store.until(VolumeMountStatus, id, undefined, { signal: signal() })
    expect(mount.mountAt(`${root}/var/mnt/data`)?.type).toBe('xfs')
    expect(mount.mountAt(`${root}/var/mnt/small`)?.type).toBe('ext4')
    expect(mount.mountAt(`${root}/etc/cni`)?.type).toBe('overlay')
    expect(mount.mountAt(`${root}/system/state`)?.type).toBe('xfs')
    expect(statfsSync(`${root}/var`).blocks * statfsSync(`${root}/var`).bsize).toBeGreaterThan(5000 * mebibyte)
    expect((files.stat(`${root}/var/lib/etcd`).mode & 0o777).toString(8)).toBe('700')
    const swap = await store.until(SwapStatus, `${disks[1]!.device}p2`, undefined, { signal: signal() })
    expect(swap.spec.size).toBeGreaterThan(15 * mebibyte)
    expect((await phase(store, 'r-ceph', 'ready')).spec).toMatchObject({ size: 32 * mebibyte, type: 'partition' })
    expect((await phase(store, 'r-huge', 'failed')).spec.errorMessage).toMatch(
      /no disk for volume "r-huge": \/dev\/loop\d+ has .* free, 900 GiB are needed/,
    )
    writeFileSync(`${root}/system/state/config.yaml`, 'kept over a start')
    writeFileSync(`${root}/etc/cni/written`, 'to the overlay')
    writeFileSync(`${root}/var/mnt/data/workload`, 'kept')
  },
  timeout * 3,
)

test(
  'when volumes are given up everything is unmounted, and found again at the next start',
  async () => {
    expect(mount.mounts().filter(({ target }) => target.startsWith(root))).toEqual([])
    expect(readFileSync('/proc/swaps', 'utf8')).not.toContain(disks[1]!.device)
    const { store, meta } = await powerOn()
    expect(meta.get(12)).toBe('kept')
    await phase(store, 'STATE', 'ready')
    await mountVolume(store, 'STATE', { log: silent, signal: signal() })
    expect(readFileSync(`${root}/system/state/config.yaml`, 'utf8')).toBe('kept over a start')
    store.put(MachineConfig, 'v1alpha1', volumes())
    await mountVolume(store, 'EPHEMERAL', { log: silent, signal: signal() })
    await store.until(VolumeMountStatus, 'u-data', undefined, { signal: signal() })
    expect(readFileSync(`${root}/var/mnt/data/workload`, 'utf8')).toBe('kept')
    await store.until(VolumeMountStatus, '/etc/cni', undefined, { signal: signal() })
    expect(readFileSync(`${root}/etc/cni/written`, 'utf8')).toBe('to the overlay')
  },
  timeout * 3,
)

/** Where the two halves of XFS that a machine has lost most often lie, in bytes: the inodes of the first group, and the log. */
function partsOfXfs(superblock: Buffer): Record<'inodes' | 'log', { offset: number; size: number }> {
  const [blockSize, groupBlocks, logBlocks] = [superblock.readUInt32BE(4), superblock.readUInt32BE(84), superblock.readUInt32BE(96)]
  const logStart = superblock.readBigUInt64BE(48)
  const groupBits = BigInt(superblock.readUInt8(124))
  const log = Number(logStart >> groupBits) * groupBlocks + Number(logStart & ((1n << groupBits) - 1n))
  const sectorSize = superblock.readUInt16BE(102)
  return { inodes: { offset: 2 * sectorSize, size: sectorSize }, log: { offset: log * blockSize, size: logBlocks * blockSize } }
}

test.each(['inodes', 'log'] as const)(
  'XFS with damage to its %s is repaired and mounted, and what was kept is there',
  async (part) => {
    const { store } = await powerOn()
    const { spec } = await phase(store, 'STATE', 'ready')
    const device = spec.location!
    const file = openSync(device, 'r+')
    const superblock = Buffer.alloc(512)
    readSync(file, superblock, 0, 512, 0)
    const { offset, size } = partsOfXfs(superblock)[part]
    writeSync(file, Buffer.alloc(size, 0xa5), 0, size, offset)
    fsyncSync(file)
    closeSync(file)
    const broken = Bun.spawn(['xfs_repair', '-n', device], { stdout: 'ignore', stderr: 'ignore' })
    expect(await broken.exited).not.toBe(0)
    await mountVolume(store, 'STATE', { log: silent, signal: signal() })
    expect(readFileSync(`${root}/system/state/config.yaml`, 'utf8')).toBe('kept over a start')
  },
  timeout * 2,
)

test(
  'a volume that the configuration no longer wants is unmounted and its data kept; one that comes is made',
  async () => {
    const { store } = await powerOn()
    store.put(MachineConfig, 'v1alpha1', volumes())
    await mountVolume(store, 'EPHEMERAL', { log: silent, signal: signal() })
    await store.until(VolumeMountStatus, 'u-data', undefined, { signal: signal() })
    store.put(MachineConfig, 'v1alpha1', configured())
    await gone(store, 'u-data')
    expect(mount.mountAt(`${root}/var/mnt/data`)).toBeUndefined()
    expect(store.list(DiscoveredVolume).some(({ spec }) => spec.partition_label === 'u-data' && spec.name === 'xfs')).toBe(true)
    store.put(MachineConfig, 'v1alpha1', volumes())
    await store.until(VolumeMountStatus, 'u-data', undefined, { signal: signal() })
    expect(existsSync(`${root}/var/mnt/data/workload`)).toBe(true)
  },
  timeout * 3,
)

test(
  'of EPHEMERAL a reserve is kept back, given up when the rest is full, and taken again when there is space',
  async () => {
    const hog = `${root}/var/hog`
    const usage = () => files.statfs(`${root}/var`)
    const reserved = () => existsSync(`${root}${spaceReserve}`)
    const changed = async (act: () => unknown) => {
      reserveChange = Promise.withResolvers()
      act()
      await within(reserveChange.promise, timeout, () => new Error('the reserve has not changed'))
    }
    const write = () => files.append(`${root}/var/log/kubelet.log`, Buffer.alloc(32 * mebibyte))
    const { store } = await powerOn()
    store.put(MachineConfig, 'v1alpha1', volumes())
    await mountVolume(store, 'EPHEMERAL', { log: silent, signal: signal() })
    if (!reserved()) await changed(() => {})
    expect(statSync(`${root}${spaceReserve}`)).toMatchObject({ size: 64 * mebibyte, blocks: (64 * mebibyte) / 512, mode: 0o100600 })
    await changed(() => {
      files.allocate(hog, usage().available - 8 * mebibyte)
      expect(write).toThrow('ENOSPC')
    })
    expect(reserved()).toBe(false)
    write()
    expect(fullDisks({ files: { statfs: usage } }).map(({ subject }) => subject)).toContain('file system /var')
    await changed(() => files.removeFile(hog))
    expect(reserved()).toBe(true)
    files.removeFile(`${root}/var/log/kubelet.log`)
  },
  timeout * 3,
)

test(
  'a partition is wiped over the API once no volume uses it, and a disk that is in use is not',
  async () => {
    const { store, machine } = await powerOn()
    const wipe = wipeDevices(machine).handle as unknown as (request: object, context: object) => Promise<unknown>
    const ask = (device: string, more: object = {}) => wipe({ devices: [{ device, method: 0, ...more }] }, { signal: signal() })
    const system = basename(disks[0]!.device)
    const disk = basename(disks[1]!.device)
    store.put(MachineConfig, 'v1alpha1', volumes())
    await mountVolume(store, 'EPHEMERAL', { log: silent, signal: signal() })
    await store.until(VolumeMountStatus, 'u-data', undefined, { signal: signal() })
    await expect(ask('nothing')).rejects.toThrow(`there is no disk or partition "nothing"`)
    await expect(ask(system)).rejects.toThrow('the system is installed on')
    await expect(ask(disk)).rejects.toThrow('uses')
    await expect(ask(`${disk}p3`)).rejects.toThrow('volume "u-data" uses')
    await expect(ask(`${disk}p3`, { skipVolumeCheck: true })).rejects.toThrow('it is in use')
    await expect(ask(disk, { dropPartition: true })).rejects.toThrow('only partitions can be dropped')
    store.put(MachineConfig, 'v1alpha1', configured())
    await gone(store, 'u-data')
    await ask(`${disk}p3`, { dropPartition: true })
    expect(
      block
        .kernelPartitions(`/dev/${disk}`)
        .map(({ index }) => index)
        .sort(),
    ).toEqual([1, 2, 4])
    await gone(store, 'u-small')
    await gone(store, 's-spare')
    await ask(disk)
    expect((await probeDevice(block, `/dev/${disk}`)).found).toBeUndefined()
    expect(block.kernelPartitions(`/dev/${disk}`)).toEqual([])
  },
  timeout * 3,
)

test(
  'on a disk that has grown EPHEMERAL takes what was added',
  async () => {
    detach()
    truncateSync(images[0]!, 8192 * mebibyte)
    await attach()
    const { store } = await powerOn()
    store.put(MachineConfig, 'v1alpha1', configured())
    store.put(VolumeMountRequest, mountId('EPHEMERAL'), mountRequest('EPHEMERAL'))
    await store.until(VolumeMountStatus, mountId('EPHEMERAL'), undefined, { signal: signal() })
    expect(statfsSync(`${root}/var`).blocks * statfsSync(`${root}/var`).bsize).toBeGreaterThan(7000 * mebibyte)
    const child = Bun.spawn(['sgdisk', '-v', disks[0]!.device], { stdout: 'pipe' })
    expect(await new Response(child.stdout).text()).toContain('No problems found')
  },
  timeout * 2,
)

test(
  'a disk that comes while the machine runs is found with what is on it, and missed when it goes',
  async () => {
    const { store } = await powerOn()
    await phase(store, 'META', 'ready')
    const file = join(folder, 'plugged.img')
    writeFileSync(file, '')
    truncateSync(file, 64 * mebibyte)
    expect(await Bun.spawn(['mkfs.ext4', '-q', '-L', 'plugged', file]).exited).toBe(0)
    const plugged = attachLoop(file, { autoclear: true })
    const id = basename(plugged.device)
    disks.push(plugged)
    const found = await store.until(DiscoveredVolume, id, ({ spec }) => spec.name === 'extfs', { signal: signal() })
    expect(found.spec.label).toBe('plugged')
    plugged.release()
    const { promise, resolve } = Promise.withResolvers<void>()
    const stop = store.subscribe(DiscoveredVolume, () => !store.get(DiscoveredVolume, id) && resolve())
    if (!store.get(DiscoveredVolume, id)) resolve()
    await promise
    stop()
    disks.pop()
  },
  timeout * 2,
)
