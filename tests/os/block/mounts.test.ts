import { describe, expect, test } from 'bun:test'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import type { mount as kernelMount } from '../../../src/linux/fs/mount.ts'
import { mountVolumes } from '../../../src/os/block/controllers/mount.ts'
import { mergeMountRequests } from '../../../src/os/block/controllers/mount-request.ts'
import { publishMounts } from '../../../src/os/block/controllers/mount-status.ts'
import { MountRequest } from '../../../src/os/block/resources/mount-request.ts'
import { MountStatus } from '../../../src/os/block/resources/mount-status.ts'
import { VolumeLifecycle } from '../../../src/os/block/resources/volume-lifecycle.ts'
import { VolumeMountRequest, VolumeMountStatus } from '../../../src/os/block/resources/volume-mount.ts'
import { VolumeStatus } from '../../../src/os/block/resources/volume-status.ts'
import { folderMount } from '../../../src/os/block/volumes/folders.ts'

const notHere = () => {
  throw new Error('no program is started here')
}

/** A machine with EPHEMERAL, a directory on it, an overlay and a swap area; calls to the kernel are recorded. */
function machine() {
  const recorded: string[] = []
  let busy = ''
  const store = new Store()
  const runtime = new Runtime(store, { log: silent })
  const kernels = {
    files: {
      mkdirAll: (path: string, { mode }: { mode?: number } = {}) =>
        void recorded.push(`mkdir ${path}${mode === undefined ? '' : ` ${mode.toString(8)}`}`),
      chmod: (path: string, mode: number) => void recorded.push(`chmod ${path} ${mode.toString(8)}`),
      chown: () => {},
      exists: (path: string) => path !== '/opt',
    },
    mount: {
      mountAt: () => undefined,
      mount: ({ source, target, type, flags = [], data = '' }: Parameters<typeof kernelMount>[0]) =>
        void recorded.push(`mount ${source} ${target} ${type} ${[...flags, ...(data.includes('nouuid') ? [data] : [])].join()}`),
      remount: (target: string, flags: readonly string[]) => void recorded.push(`remount ${target} ${flags.join()}`),
      umountTree: (target: string) => {
        if (target === busy) throw new Error(`umount "${target}": EBUSY`)
        recorded.push(`umount ${target}`)
        return [target]
      },
    },
    block: {
      swapOn: (path: string) => void recorded.push(`swapon ${path}`),
      swapOff: (path: string) => void recorded.push(`swapoff ${path}`),
      growXfs: () => true,
      openDevice: async () => ({
        path: '',
        size: 0,
        sectorSize: 512,
        read: async () => new Uint8Array(),
        write: async () => {},
        flush: async () => {},
        close: async () => {},
      }),
    },
  }
  runtime.register(
    mergeMountRequests,
    mountVolumes({ kernel: kernels, spawn: notHere } as unknown as Parameters<typeof mountVolumes>[0]),
    publishMounts,
  )
  const disk = { type: 'partition' as const, phase: 'ready' as const }
  store.put(VolumeStatus, 'EPHEMERAL', {
    ...disk,
    mountLocation: '/dev/vda4',
    filesystem: 'xfs',
    mountSpec: folderMount({ target: '/var', mode: 0o755 }),
  })
  store.put(VolumeStatus, '/var/lib', {
    type: 'directory',
    phase: 'ready',
    parentID: 'EPHEMERAL',
    mountSpec: folderMount({ parent: 'EPHEMERAL', target: 'lib', mode: 0o700 }),
  })
  store.put(VolumeStatus, '/etc/cni', {
    type: 'overlay',
    phase: 'ready',
    parentID: 'EPHEMERAL',
    mountSpec: folderMount({ parent: 'EPHEMERAL', target: '/etc/cni' }),
  })
  store.put(VolumeStatus, 's-spare', { ...disk, mountLocation: '/dev/vdb1', filesystem: 'swapi', mountSpec: folderMount({ target: '' }) })
  const ask = (id: string, volumeID: string, more: object = {}) =>
    store.put(VolumeMountRequest, id, {
      volumeID,
      requester: `who-${id}`,
      readOnly: false,
      detached: false,
      disableAccessTime: false,
      secure: false,
      ...more,
    })
  const drop = (id: string) => {
    if (store.teardown(VolumeMountRequest, id)) store.destroy(VolumeMountRequest, id)
  }
  store.put(VolumeLifecycle, 'lifecycle', {})
  return { store, runtime, recorded, ask, drop, hold: (target: string) => (busy = target), settled: () => runtime.settled() }
}

const answered = (store: Store) => store.list(VolumeMountStatus).map(({ metadata, spec }) => `${metadata.id} ${spec.target}`)

describe('volumes', () => {
  test('are mounted parents first, with a status for each requester', async () => {
    const { store, runtime, recorded, ask, settled } = machine()
    ask('a', '/var/lib')
    ask('b', '/etc/cni')
    runtime.start()
    await settled()
    expect(recorded).toEqual([])
    ask('c', 'EPHEMERAL', { secure: true })
    ask('d', 'EPHEMERAL', { readOnly: true })
    ask('e', 's-spare')
    await settled()
    expect(recorded).toEqual([
      'mkdir /var',
      'mount /dev/vda4 /var xfs nosuid,nodev',
      'chmod /var 755',
      'swapon /dev/vdb1',
      'mkdir /var/system/overlays/etc-cni-diff 755',
      'mkdir /var/system/overlays/etc-cni-workdir 755',
      'mount overlay /etc/cni overlay ',
      'mkdir /var/lib 700',
    ])
    // An overlay has no name among file systems.
    const shown = store.list(MountStatus).map(({ metadata, spec }) => [metadata.id, spec.filesystem])
    expect(Object.fromEntries(shown)).toEqual({ EPHEMERAL: 'xfs', '/var/lib': 'none', '/etc/cni': 'none', 's-spare': 'swapi' })
    expect(answered(store)).toEqual(['a /var/lib', 'b /etc/cni', 'c /var', 'd /var', 'e '])
    expect(store.get(MountRequest, 'EPHEMERAL')?.spec).toMatchObject({
      requesters: ['who-c', 'who-d'],
      requesterIDs: ['c', 'd'],
      readOnly: false,
      secure: true,
    })
    runtime.stop()
  })

  test('follow their requests: options are merged again when one is removed, and the last one unmounts before it is released', async () => {
    const { store, runtime, recorded, ask, drop, settled } = machine()
    runtime.start()
    ask('c', 'EPHEMERAL', { secure: true })
    ask('d', 'EPHEMERAL', { readOnly: true })
    await settled()
    recorded.length = 0
    drop('c')
    await settled()
    expect(recorded).toEqual(['remount /var ro'])
    expect(answered(store)).toEqual(['d /var'])
    drop('d')
    await settled()
    expect(recorded.at(-1)).toBe('umount /var')
    expect(store.get(MountStatus, 'EPHEMERAL')).toBeUndefined()
    expect(store.get(VolumeMountRequest, 'd')?.metadata.finalizers ?? []).toEqual([])
    runtime.stop()
  })

  test('are all unmounted in reverse order when released; one in use delays that', async () => {
    const { store, runtime, recorded, ask, hold, settled } = machine()
    runtime.start()
    for (const [id, volume] of [
      ['c', 'EPHEMERAL'],
      ['b', '/etc/cni'],
      ['e', 's-spare'],
    ] as const)
      ask(id, volume)
    await settled()
    recorded.length = 0
    hold('/var')
    store.teardown(VolumeLifecycle, 'lifecycle')
    await settled()
    expect(recorded).toEqual(['umount /etc/cni', 'swapoff /dev/vdb1'])
    expect(store.get(VolumeLifecycle, 'lifecycle')?.metadata.finalizers).toEqual(['block.MountController'])
    runtime.stop()
  })

  test('whose disk was removed stay, so that nothing is written below, and are mounted again when it is back', async () => {
    const { store, runtime, recorded, ask, settled } = machine()
    const mountSpec = folderMount({ target: '/var/mnt/data' })
    const data = { type: 'partition' as const, filesystem: 'xfs' as const, mountSpec }
    const put = (phase: 'ready' | 'failed', mountLocation?: string) =>
      store.put(VolumeStatus, 'u-data', { ...data, phase, ...(mountLocation && { mountLocation }) })
    put('ready', '/dev/sdb1')
    runtime.start()
    ask('u', 'u-data')
    await settled()
    recorded.length = 0
    put('failed')
    await settled()
    expect(recorded).toEqual([])
    expect(answered(store)).toEqual(['u /var/mnt/data'])
    put('ready', '/dev/sdc1')
    await settled()
    expect(recorded).toEqual(['umount /var/mnt/data', 'mkdir /var/mnt/data', 'mount /dev/sdc1 /var/mnt/data xfs nouuid'])
    expect(store.get(MountStatus, 'u-data')?.spec.source).toBe('/dev/sdc1')
    runtime.stop()
  })

  test('that others lie on are not taken away when their disk is back', async () => {
    const { store, runtime, recorded, ask, settled } = machine()
    runtime.start()
    ask('c', 'EPHEMERAL')
    ask('a', '/var/lib')
    await settled()
    recorded.length = 0
    store.put(VolumeStatus, 'EPHEMERAL', { ...store.get(VolumeStatus, 'EPHEMERAL')!.spec, mountLocation: '/dev/vdc4' })
    await settled()
    expect(recorded).toEqual([])
    runtime.stop()
  })

  test('whose mount fails are retried and block no others', async () => {
    const { store, runtime, recorded, ask, settled } = machine()
    store.put(VolumeStatus, '/opt', {
      type: 'overlay',
      phase: 'ready',
      parentID: 'EPHEMERAL',
      mountSpec: folderMount({ parent: 'EPHEMERAL', target: '/opt' }),
    })
    runtime.start()
    for (const [id, volume] of [
      ['c', 'EPHEMERAL'],
      ['o', '/opt'],
      ['a', '/var/lib'],
    ] as const)
      ask(id, volume)
    await settled()
    expect(answered(store)).toEqual(['a /var/lib', 'c /var'])
    expect(recorded.some((line) => line.includes('/opt '))).toBe(false)
    runtime.stop()
  })
})
