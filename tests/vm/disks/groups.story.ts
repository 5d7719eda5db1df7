/**
 * Volume groups and arrays that were on disks before the machine came: activated and assembled at its start, used as volumes of the
 * configuration, there again after the next start, and given up by an order.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { copyFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { disk, dist, forgetState, stateFolder, TestMachine, uefi } from '../machine.ts'
import { asAdministrator, oneNode } from '../one-node.ts'
import { makeDisks } from './foreign-disks.ts'

const folder = stateFolder('groups')
const path = (name: string) => join(folder, name)
const minutes = 60_000
const serials = ['first', 'second', 'left', 'right', 'alone']
const disks = serials.map((serial) => disk(path(`${serial}.img`), 512, 'virtio', serial))
let machine: TestMachine
const admin = (...args: string[]) => asAdministrator(folder, machine.port, ...args)

/** A group of two disks with a plain volume, a mirrored one, one in a pool and an empty one; a mirror of two disks; a broken one. */
const commands = `
group() { command=$1; shift; lvm $command --config 'activation{udev_sync=0 udev_rules=0 monitoring=0}' "$@"; }
group pvcreate /dev/vda /dev/vdb
group vgcreate data /dev/vda /dev/vdb
group lvcreate -y -Wn -Zn -L 64M -n plain data
group lvcreate -y -Wn -Zn --type raid1 -m 1 --nosync -L 32M -n twice data
group lvcreate -y --type thin-pool -L 64M -n pool data
group lvcreate -y -Wn --thin -V 128M -n thin data/pool
group lvcreate -y -Wn -Zn -L 128M -n empty data
/sbin/mke2fs -q -t ext4 -L plain /dev/mapper/data-plain
/sbin/mke2fs -q -t ext4 -L twice /dev/mapper/data-twice
/sbin/mke2fs -q -t ext4 -L thin /dev/mapper/data-thin
mdadm --create /dev/md0 --run --level=1 --raid-devices=2 --metadata=1.2 --assume-clean --name=mirror /dev/vdc /dev/vdd
/sbin/mke2fs -q -t ext4 -L mirror /dev/md0
mdadm --create /dev/md1 --run --level=1 --raid-devices=2 --metadata=1.2 --assume-clean --name=half /dev/vde missing
/sbin/mke2fs -q -t ext4 -L half /dev/md1
for each in mapper/data-plain mapper/data-twice mapper/data-thin md0 md1; do
  mount /dev/$each /mnt; echo "kept on $each" > /mnt/note; umount /mnt
done
group vgchange -an data
mdadm --stop /dev/md0 /dev/md1
`

const existing = (name: string) =>
  `---\napiVersion: v1alpha1\nkind: ExistingVolumeConfig\nname: ${name}\ndiscovery:\n  volumeSelector:\n    match: volume.label == "${name}"\n`
const made = `---
apiVersion: v1alpha1
kind: UserVolumeConfig
name: new
volumeType: disk
provisioning:
  diskSelector:
    match: '"/dev/disk/by-id/dm-name-data-empty" in disk.symlinks'
`
const names = ['plain', 'twice', 'thin', 'mirror', 'half']

beforeAll(async () => {
  console.log(`console: ${path('console.log')}`)
  await makeDisks(folder, disks, commands)
  const file = path('disk.qcow2')
  copyFileSync(join(process.env.ICHOR_VM_IMAGE ?? dist, 'ichor-amd64.qcow2'), file)
  const system = { file, format: 'qcow2', bus: 'virtio', serial: 'system' } as const
  machine = await TestMachine.start({
    console: path('console.log'),
    disks: [...disks, system],
    firmware: uefi(folder),
    memory: 2560,
    restarts: true,
  })
}, 15 * minutes)
afterAll(async () => {
  await machine?.unplug()
  forgetState(folder)
})

/** Waits until everything is mounted, with what was written to it. */
async function mounted(): Promise<void> {
  const devices = { plain: 'mapper/data-plain', twice: 'mapper/data-twice', thin: 'mapper/data-thin', mirror: 'md0', half: 'md1' }
  for (const [name, device] of Object.entries(devices))
    await machine.outputs(() => admin('read', `/var/mnt/${name}/note`), new RegExp(`^kept on ${device}$`, 'm'), 15 * minutes)
  await machine.outputs(() => admin('get', 'volumestatus', 'u-new'), /u-new\s+\d+\s+disk\s+ready/, 10 * minutes)
}

test(
  'groups are activated and arrays assembled, and their volumes mounted',
  async () => {
    await machine.shows(/addresses=10\.0\.2\.15 port=50000/, 10 * minutes)
    await oneNode(folder, '--install-disk', '/dev/vdf')
    const documents = `${await Bun.file(path('controlplane.yaml')).text()}${names.map(existing).join('')}${made}`
    writeFileSync(path('controlplane.yaml'), documents)
    await machine.takes(path('controlplane.yaml'), 10 * minutes)
    await mounted()
    expect(machine.console).toMatch(/volume group activated.*group=data/)
    expect(machine.console).toMatch(/array runs without some of its members.*missing=1/)
  },
  46 * minutes,
)

test('volumes that LVM uses itself are not shown', async () => {
  const listed = (await admin('get', 'discoveredvolumes')).stdout.split('\n').filter((line) => /\sdm-\d/.test(line))
  // The root of the system is a mapping too.
  const labels = listed.filter((line) => !line.includes('squashfs')).map((line) => line.trim().split(/\s+/).at(-1) ?? '')
  expect(labels.sort()).toEqual(['plain', 'thin', 'twice', 'u-new'])
}, 60_000)

test('a disk of a group in use is not wiped, with a line that states how', async () => {
  const { stderr } = await admin('wipe', 'disk', 'vdc')
  expect(stderr).toMatch(/"vdc" is part of "md\d+": to take that apart first, add --skip-secondary-check/)
  expect((await admin('wipe', 'disk', 'vda', '--skip-secondary-check')).stderr).toMatch(/in use/)
}, 120_000)

test(
  'after a restart everything is there again',
  async () => {
    machine.forget()
    expect((await admin('reboot', '--mode', 'powercycle', '--wait=false')).code).toBe(0)
    await machine.shows(/machine configuration found.*source=state/, 15 * minutes)
    await mounted()
  },
  46 * minutes,
)

test(
  'a group that no volume needs any more is given up by an order',
  async () => {
    const documents = `${await Bun.file(path('controlplane.yaml')).text()}`
      .split('\n---\n')
      .filter((each) => !/kind: (Existing|User)Volume/.test(each))
    writeFileSync(path('without.yaml'), documents.join('\n---\n'))
    const applied = () => admin('apply-config', '--file', path('without.yaml'), '--mode', 'no-reboot')
    await machine.outputs(applied, /^/, 10 * minutes)
    const wiped = () => admin('wipe', 'disk', 'vda', 'vdb', 'vdc', 'vdd', '--skip-secondary-check')
    await machine.outputs(wiped, /^/, 10 * minutes)
    // The root of the system stays, which is dm-0.
    const freed = /^(?![\s\S]*(?:lvm2-pv|dm-[1-9]|vd[cd] .*linux_raid_member))[\s\S]*vdd /
    await machine.outputs(() => admin('get', 'discoveredvolumes'), freed, 5 * minutes)
  },
  30 * minutes,
)
