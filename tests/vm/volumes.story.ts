/**
 * The disks of a machine: volumes of every kind made, found and wiped, META kept, the system's own wiped one by one and
 * created again, and everything grown with its disk. With ICHOR_VM_STATE what was installed is kept for the next run.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, openSync, truncateSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { addPartition } from '../../src/os/block/layout.ts'
import { newTable, writeTable } from '../../src/wire/gpt/table.ts'
import type { CommandResult } from '../support/command-result.ts'
import { qmp } from './control.ts'
import { disk, dist, forgetState, stateFolder, TestMachine, uefi } from './machine.ts'
import { asAdministrator, oneNode } from './one-node.ts'

const folder = stateFolder('volumes')
const path = (name: string) => join(folder, name)
const minutes = 60_000
const mebibyte = 1 << 20
let machine: TestMachine

const done = (step: string) => existsSync(path(step))
const remember = (step: string) => writeFileSync(path(step), '')

async function powerOn(): Promise<void> {
  machine = await TestMachine.start({
    console: path('console.log'),
    cdrom: done('installed') ? undefined : join(process.env.ICHOR_VM_IMAGE ?? dist, 'ichor-amd64.iso'),
    disks: [
      // Of another sector size than the others, for which nobody may forget to ask.
      { ...disk(path('system.img'), 8 * 1024, 'virtio', 'system'), sectorSize: 4096 },
      disk(path('data.img'), 3 * 1024, 'virtio', 'data'),
      disk(path('old.img'), 256, 'virtio', 'old'),
    ],
    firmware: uefi(folder),
    memory: 2304,
    restarts: true,
    control: path('control.sock'),
  })
}

beforeAll(async () => {
  if (!done('old.img')) await somebodysDisk(path('old.img'))
  await powerOn()
  console.log(`console: ${path('console.log')}`)
})
afterAll(async () => {
  await machine.unplug()
  forgetState(folder)
})

/** A disk with a file system of somebody else's in a partition. */
async function somebodysDisk(file: string): Promise<void> {
  const { size } = { size: 256 * mebibyte }
  disk(file, 256)
  const table = newTable({ sectorSize: 512, size, diskGuid: crypto.randomUUID() })
  const partition = addPartition(table, { label: 'ARCHIVE', type: 'linux', size: 200 * mebibyte })!
  const open = openSync(file, 'r+')
  for (const { offset, bytes } of writeTable(table, { protective: true }).flat()) writeSync(open, bytes, 0, bytes.length, offset)
  const child = Bun.spawn(['mkfs.ext4', '-q', '-F', '-L', 'archive', '-E', `offset=${partition.first * 512}`, file, `${200 * 1024}k`])
  expect(await child.exited).toBe(0)
}

const admin = (...args: string[]) => asAdministrator(folder, machine.port, ...args)
const outputs = (command: () => Promise<CommandResult>, what: RegExp, deadline = 15 * minutes) => machine.outputs(command, what, deadline)
/** Waits until a volume is ready. */
const volume = (id: string) => outputs(() => admin('get', 'volumestatus', id), new RegExp(`${id}\\s+\\d+\\s+\\S+\\s+ready`))

const volumes = (...names: string[]) => {
  const on = 'provisioning:\n  diskSelector:\n    match: disk.serial == "data" && !system_disk\n'
  const documents: Record<string, string> = {
    data: `kind: UserVolumeConfig\nname: data\n${on}  maxSize: 1GiB\n`,
    ext: `kind: UserVolumeConfig\nname: ext\n${on}  minSize: 200MiB\n  maxSize: 200MiB\nfilesystem:\n  type: ext4\n`,
    ceph: `kind: RawVolumeConfig\nname: ceph\n${on}  minSize: 100MiB\n  maxSize: 100MiB\n`,
    spare: `kind: SwapVolumeConfig\nname: spare\n${on}  minSize: 128MiB\n  maxSize: 128MiB\n`,
    ephemeral: 'kind: VolumeConfig\nname: EPHEMERAL\nprovisioning:\n  maxSize: 50%\n  grow: true\n',
    old: 'kind: ExistingVolumeConfig\nname: archive\ndiscovery:\n  volumeSelector:\n    match: volume.partition_label == "ARCHIVE"\nmount:\n  readOnly: true\n',
  }
  return names.map((name) => `---\napiVersion: v1alpha1\n${documents[name]}`).join('')
}

/** Writes the configuration of a control plane with some of the volumes; gives the file's path. */
async function configuration(file: string, ...names: Parameters<typeof volumes>): Promise<string> {
  writeFileSync(path(file), `${await Bun.file(path('controlplane.yaml')).text()}${volumes(...names)}`)
  return path(file)
}

/** Waits until the API has gone into its container: on the way there it is away for a moment. */
const settled = () => machine.shows(/moving apid into its container[\s\S]*service=apid .*"Health check successful"/, 20 * minutes)

/** Hands the configuration to the machine in maintenance. */
async function applyFirst(): Promise<void> {
  await machine.shows(/maintenance: waiting for a machine configuration.*addresses=10\.0\.2\.15/, 15 * minutes)
  await machine.shows(/service=apid .*"Health check successful"/, 15 * minutes)
  await oneNode(folder, '--install-disk', '/dev/vda')
  const file = await configuration('whole.yaml', 'ephemeral', 'data', 'ext', 'ceph', 'spare', 'old')
  await machine.takes(file, 5 * minutes)
}

test.skipIf(done('installed'))(
  'in maintenance disks are known with what is on them, and one can be wiped',
  async () => {
    await machine.shows(/service=apid .*"Health check successful"/, 15 * minutes)
    const disks = await outputs(() => machine.insecurely('get', 'disks', '-o', 'yaml'), /serial: data/)
    expect(disks).toMatch(/serial: old/)
    expect(disks).toMatch(/sector_size: 4096/)
    expect(await outputs(() => machine.insecurely('get', 'discoveredvolumes'), /ARCHIVE/)).toMatch(
      /vdc1\s+\d+\s+partition\s+210 MB\s+extfs\s+archive\s+ARCHIVE/,
    )
    const wiped = await machine.insecurely('wipe', 'disk', 'vdb')
    expect(wiped.stderr).toContain('wiped vdb')
  },
  30 * minutes,
)

test.skipIf(done('installed'))(
  'it installs, and starts from its disk',
  async () => {
    await applyFirst()
    await machine.shows(/sequence=install phase=stopEverything /, 25 * minutes)
    machine.forget()
    await machine.shows(/\[stage0\] root file system \/ichor\/[0-9a-f]{16}\.sqsh from \/dev\/vda1 vfat/, 20 * minutes)
    await machine.shows(/machine configuration found.*source=state/, 20 * minutes)
    remember('installed')
  },
  60 * minutes,
)

test(
  'volumes of every kind are provisioned as configured, and existing ones are found',
  async () => {
    await settled()
    for (const id of ['META', 'STATE', 'EPHEMERAL', 'u-data', 'u-ext', 'r-ceph', 's-spare', 'e-archive']) await volume(id)
    const mounts = await outputs(() => admin('get', 'mountstatus'), /e-archive/)
    expect(mounts).toMatch(/u-data\s+\d+\s+\/dev\/vdb\d\s+\/var\/mnt\/data\s+xfs/)
    expect(mounts).toMatch(/u-ext\s+\d+\s+\/dev\/vdb\d\s+\/var\/mnt\/ext\s+ext4/)
    expect(mounts).toMatch(/e-archive\s+\d+\s+\/dev\/vdc1\s+\/var\/mnt\/archive\s+ext4/)
    expect(await outputs(() => admin('get', 'swap'), /vdb/)).toMatch(/\/dev\/vdb\d\s+128 MiB/)
    expect(await outputs(() => admin('read', '/proc/mounts'), /archive/)).toMatch(/\/dev\/vdc1 \/var\/mnt\/archive ext4 ro,/)
    expect((await admin('get', 'blocksymlinks', 'vdb', '-o', 'yaml')).stdout).toContain('/dev/disk/by-id/virtio-data')
  },
  60 * minutes,
)

test(
  'a volume that is used cannot be wiped; once it is given up it can, and its partition is gone',
  async () => {
    const where = (await admin('get', 'volumestatus', 'u-ext', '-o', 'jsonpath={.spec.location}')).stdout.trim().replace('/dev/', '')
    expect(where).toMatch(/^vdb\d$/)
    const refused = await admin('wipe', 'disk', where)
    expect(refused.code).toBe(1)
    expect(refused.stderr).toContain('volume "u-ext" uses')
    const less = await configuration('less.yaml', 'ephemeral', 'data', 'ceph', 'spare', 'old')
    expect((await admin('apply-config', '--mode', 'no-reboot', '--file', less)).stderr).not.toContain('error')
    await machine.until('the volume is given up', async () => (await admin('get', 'volumestatus', 'u-ext')).code !== 0, 5 * minutes)
    expect((await admin('wipe', 'disk', where, '--drop-partition')).stderr).toContain(`wiped ${where}`)
    await machine.until('the partition is gone', async () => !(await admin('get', 'discoveredvolumes')).stdout.includes(where), 5 * minutes)
  },
  30 * minutes,
)

test(
  'a stick that is plugged in while it runs is found, and forgotten when it is pulled out',
  async () => {
    await somebodysDisk(path('stick.img'))
    const control = path('control.sock')
    await qmp(control, 'blockdev-add', { driver: 'file', 'node-name': 'stick', filename: path('stick.img') })
    await qmp(control, 'device_add', { driver: 'usb-storage', id: 'stick', bus: 'usb.0', drive: 'stick' })
    expect(await outputs(() => admin('get', 'disks', 'sda'), /sda/)).toMatch(/usb/)
    await outputs(() => admin('get', 'discoveredvolumes'), /sda1\s+\d+\s+partition\s+210 MB\s+extfs\s+archive\s+ARCHIVE/)
    // The volume that was there first stays where it is, though the stick's name comes before its disk's.
    expect((await admin('get', 'volumestatus', 'e-archive', '-o', 'jsonpath={.spec.location}')).stdout.trim()).toBe('/dev/vdc1')
    await qmp(control, 'device_del', { id: 'stick' })
    await machine.until('the stick is gone', async () => !(await admin('get', 'discoveredvolumes')).stdout.includes('sda'), 5 * minutes)
  },
  30 * minutes,
)

test(
  'META lasts over a start, and every volume is found again',
  async () => {
    expect((await admin('meta', 'write', '0x0c', 'written by the story')).stderr).toBe('')
    expect((await admin('get', 'meta')).stdout).toMatch(/0x0c\s+\d+\s+written by the story/)
    machine.forget()
    expect((await admin('reboot', '--mode', 'powercycle', '--wait=false')).code).toBe(0)
    await machine.shows(/sequence=reboot phase=volumeFinalize /, 15 * minutes)
    await machine.shows(/machine configuration found.*source=state/, 20 * minutes)
    await settled()
    await outputs(() => admin('get', 'meta'), /written by the story/, 20 * minutes)
    await volume('u-data')
  },
  60 * minutes,
)

test(
  'on disks that have grown EPHEMERAL has grown',
  async () => {
    const size = async () => Number((await admin('get', 'volumestatus', 'EPHEMERAL', '-o', 'jsonpath={.spec.size}')).stdout)
    const before = await size()
    expect(before / mebibyte).toBeGreaterThan(4000)
    expect(before / mebibyte).toBeLessThanOrEqual(4096) // half of the disk, as its VolumeConfig specifies
    await machine.unplug()
    truncateSync(path('system.img'), 12 * 1024 * mebibyte)
    await powerOn()
    await settled()
    await machine.until('EPHEMERAL has grown', async () => (await size()) > before + 1900 * mebibyte, 30 * minutes)
    const free = await outputs(() => admin('mounts'), /\/dev\/vda\d+\s+[\d.]+\s.*\/var\n/)
    expect(Number(/\/dev\/vda\d+\s+([\d.]+)\s.*\/var\n/.exec(free)?.[1])).toBeGreaterThan((before + 1800 * mebibyte) / 1e9)
  },
  60 * minutes,
)

test(
  'EPHEMERAL is wiped and created again, the machine keeps its configuration',
  async () => {
    const uuid = async () => (await admin('get', 'volumestatus', 'EPHEMERAL', '-o', 'jsonpath={.spec.uuid}')).stdout.trim()
    const before = await uuid()
    machine.forget()
    const reset = await admin('reset', '--graceful=false', '--reboot', '--wait=false', '--system-labels-to-wipe', 'EPHEMERAL')
    expect(reset.stderr).not.toContain('error')
    await machine.shows(/sequence=reset phase=resetSpec /, 15 * minutes)
    await machine.shows(/machine configuration found.*source=state/, 20 * minutes)
    await settled()
    await machine.until('EPHEMERAL is another', async () => !['', before].includes(await uuid()), 20 * minutes)
    await volume('EPHEMERAL')
  },
  60 * minutes,
)

test(
  'with STATE wiped too it waits for its configuration, and is what it was with it',
  async () => {
    machine.forget()
    const labels = ['--system-labels-to-wipe', 'STATE', '--system-labels-to-wipe', 'EPHEMERAL']
    expect((await admin('reset', '--graceful=false', '--reboot', '--wait=false', ...labels)).stderr).not.toContain('error')
    await machine.shows(/sequence=reset phase=resetSpec /, 15 * minutes)
    machine.forget()
    await applyFirst()
    await settled()
    for (const id of ['STATE', 'EPHEMERAL', 'u-data']) await volume(id)
    expect((await admin('get', 'meta')).stdout).toContain('written by the story')
  },
  60 * minutes,
)

test(
  'a reset of everything leaves disks without anything on them',
  async () => {
    machine.forget()
    const reset = await admin('reset', '--graceful=false', '--wait=false', '--user-disks-to-wipe', '/dev/vdb')
    expect(reset.stderr).not.toContain('error')
    await machine.shows(/sequence=reset phase=reset /, 20 * minutes)
    await machine.off(10 * minutes)
    for (const name of ['system.img', 'data.img']) {
      const child = Bun.spawn(['blkid', '-p', path(name)], { stdout: 'pipe' })
      expect(await new Response(child.stdout).text()).toBe('')
      const beginning = Buffer.from(await Bun.file(path(name)).slice(0, mebibyte).arrayBuffer())
      expect(beginning.includes('EFI PART')).toBe(false)
    }
  },
  60 * minutes,
)
