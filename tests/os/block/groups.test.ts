import { expect, test } from 'bun:test'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import { wipeDevices } from '../../../src/os/block/api/wipe.ts'
import { assembleArrays } from '../../../src/os/block/controllers/arrays.ts'
import { activateVolumeGroups } from '../../../src/os/block/controllers/volume-groups.ts'
import { kernelArrays } from '../../../src/os/block/groups/arrays.ts'
import { isInternalVolume } from '../../../src/os/block/groups/hidden.ts'
import { parseGroup } from '../../../src/os/block/groups/lvm.ts'
import { chooseInstallDisk } from '../../../src/os/block/install-disk.ts'
import { BlockDevice } from '../../../src/os/block/resources/block-device.ts'
import { DiscoveredVolume } from '../../../src/os/block/resources/discovered-volume.ts'
import { VolumeStatus } from '../../../src/os/block/resources/volume-status.ts'
import type { Spawn } from '../../../src/supervise/spawn.ts'

/** A machine of which programs only leave their command lines, and answer by what they are called with. */
function machine(answer: (words: string) => string = () => '', files: Record<string, string> = {}) {
  const store = new Store()
  const ran: string[] = []
  const spawn: Spawn = ({ argv }) => {
    const words = argv.filter((word, at) => word !== '--config' && argv[at - 1] !== '--config').join(' ')
    ran.push(words)
    const output = new Response(answer(words)).body as ReadableStream<Uint8Array>
    return { pid: 1, output: [output], exited: Promise.resolve({ code: 0, signal: null }), kill: () => {} }
  }
  const list = () => [...new Set(Object.keys(files).map((path) => path.split('/')[4] ?? ''))]
  const kernel = { files: { list, readTextIfThere: (path: string) => files[path] } }
  const runtime = new Runtime(store, { log: silent })
  runtime.register(activateVolumeGroups({ spawn }), assembleArrays({ spawn, kernel } as never))
  runtime.start()
  const sees = (id: string, name: string) =>
    store.put(DiscoveredVolume, id, {
      ...{ dev_path: `/dev/${id}`, type: 'disk', device_path: '', offset: 0, size: 1, pretty_size: '1 B', name },
    })
  const installed = () => store.put(VolumeStatus, 'META', { type: 'partition', phase: 'ready' } as never)
  return { store, ran, spawn, sees, installed, settled: () => runtime.settled(), stop: () => runtime.stop() }
}

const scan = 'lvm pvscan --cache --listvg --checkcomplete --autoactivation event --udevoutput'

test('a group is activated with its last disk, once, and only on an installed machine', async () => {
  const { ran, sees, installed, settled, stop } = machine((words) =>
    words.endsWith('/dev/vdb') ? "LVM_VG_NAME_INCOMPLETE='data'\n" : words.endsWith('/dev/vdc') ? "LVM_VG_NAME_COMPLETE='data'\n" : '',
  )
  sees('vdb', 'lvm2-pv')
  await settled()
  expect(ran).toEqual([])
  installed()
  await settled()
  expect(ran).toEqual([`${scan} /dev/vdb`])
  sees('vdc', 'lvm2-pv')
  await settled()
  sees('vdd', 'xfs')
  await settled()
  expect(ran.slice(1)).toEqual([`${scan} /dev/vdc`, 'lvm vgchange --activate ay --autoactivation event data'])
  stop()
})

test('what is made while the machine runs is left to who made it; a disk that is plugged in again counts as a new one', async () => {
  const { store, ran, sees, installed, settled, stop } = machine()
  installed()
  sees('vdb', '')
  await settled()
  sees('vdb', 'lvm2-pv')
  await settled()
  sees('vdb', 'linux_raid_member')
  await settled()
  expect(ran).toEqual([])
  store.destroy(DiscoveredVolume, 'vdb')
  await settled()
  sees('vdb', 'linux_raid_member')
  await settled()
  expect(ran).toEqual(['mdadm --incremental --homehost=any /dev/vdb'])
  stop()
})

test('arrays of the kernel: those without a device, and what they lack', () => {
  const files: Record<string, string> = {
    '/sys/class/block/md126/md/array_state': 'inactive\n',
    '/sys/class/block/md127/md/array_state': 'clean\n',
    '/sys/class/block/md127/md/degraded': '1\n',
    '/sys/class/block/md125/md/array_state': 'clear\n',
    '/sys/class/block/vda/size': '8\n',
  }
  const list = () => ['md125', 'md126', 'md127', 'md127p1', 'vda']
  expect(kernelArrays({ list, readTextIfThere: (path) => files[path] })).toEqual([
    { name: 'md126', started: false, missing: 0 },
    { name: 'md127', started: true, missing: 1 },
  ])
})

test('two members of an array and a physical volume that are wiped together: each group and array is taken apart once', async () => {
  const { store, ran, spawn, sees } = machine((words) => (words.startsWith('lvm pvscan') ? "LVM_VG_NAME_COMPLETE='data'\n" : ''))
  const device = { type: 'disk', major: 8, minor: 0, devicePath: '', generation: 1 }
  for (const name of ['vdb', 'vdc', 'vdd']) store.put(BlockDevice, name, device)
  store.put(BlockDevice, 'md127', { ...device, secondaries: ['vdb', 'vdc'] })
  for (const name of ['vdb', 'vdc']) sees(name, 'linux_raid_member')
  sees('vdd', 'lvm2-pv')
  const opened: string[] = []
  const openDevice = async (path: string) => {
    opened.push(path)
    throw new Error('opened')
  }
  const method = wipeDevices({ store, spawn, log: silent, kernel: { block: { openDevice } } } as never)
  const devices = ['vdb', 'vdc', 'vdd'].map((name) => ({ device: name, method: 0, skipSecondaryCheck: true }))
  const handle = method.handle as (request: unknown, context: unknown) => Promise<unknown>
  await expect(handle({ devices }, {})).rejects.toThrow('opened')
  expect(ran).toEqual([`${scan} /dev/vdd`, 'lvm vgchange --activate n data', 'mdadm --stop /dev/md127'])
  expect(opened).toEqual(['/dev/vdb'])
})

const id = 'a'.repeat(64)

test.each([
  ['dm-0', `LVM-${id}`, 'data-web', false],
  ['dm-0', `LVM-${id}`, 'data-my--rimages', false],
  ['dm-0', `LVM-${id}`, 'data-web_rimage_0', true],
  ['dm-0', `LVM-${id}`, 'data-web_rmeta_1', true],
  ['dm-0', `LVM-${id}-tpool`, 'data-pool-tpool', true],
  ['dm-0', `LVM-${id}-tdata`, 'data-pool_tdata', true],
  ['dm-0', 'CRYPT-LUKS2-0', 'luks2-EPHEMERAL', false],
  ['vda', '', '', false],
])('%s with UUID %s and name %s: internal %s', (device, uuid, name, internal) => {
  const readTextIfThere = (path: string) => (path.endsWith('/uuid') ? `${uuid}\n` : `${name}\n`)
  expect(isInternalVolume({ readTextIfThere }, device)).toBe(internal)
})

test('the answer of pvscan', () => {
  expect(parseGroup("  some warning\nLVM_VG_NAME_COMPLETE='data'\n")).toEqual({ name: 'data', complete: true })
  expect(parseGroup("LVM_VG_NAME_INCOMPLETE='my-group.2'")).toEqual({ name: 'my-group.2', complete: false })
  expect(parseGroup('')).toBeUndefined()
  expect(() => parseGroup("LVM_VG_NAME_COMPLETE='-a'")).toThrow('decode output of pvscan at 0')
})

test.each([
  '/dev/md0',
  '/dev/md/data',
  '/dev/dm-1',
  '/dev/mapper/data-web',
  '/dev/disk/by-id/md-name-any',
  '/dev/disk/by-id/dm-name-data-web',
])('the system is not installed on %s', (disk) => {
  expect(() => chooseInstallDisk([], { disk, diskSelector: undefined })).toThrow(
    `choose install disk: "${disk}" is an array or a logical volume, from which no firmware starts: set machine.install.disk to a disk`,
  )
})
