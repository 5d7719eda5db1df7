import { describe, expect, test } from 'bun:test'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
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

/** A machine with EPHEMERAL, a folder on it, an overlay and a swap area; what the kernel is told is written down. */
function machine() {
  const told: string[] = []
  let busy = ''
  const store = new Store()
  const runtime = new Runtime(store, { log: silent })
  const doors = {
    files: {
      mkdirAll: (path: string, { mode }: { mode?: number } = {}) =>
        void told.push(`mkdir ${path}${mode === undefined ? '' : ` ${mode.toString(8)}`}`),
      chmod: (path: string, mode: number) => void told.push(`chmod ${path} ${mode.toString(8)}`),
      chown: () => {},
      exists: (path: string) => path !== '/opt',
    },
    mount: {
      mountAt: () => undefined,
      mount: ({ source, target, type, flags = [] }: { source: string; target: string; type?: string; flags?: readonly string[] }) =>
        void told.push(`mount ${source} ${target} ${type} ${flags.join()}`),
      remount: (target: string, flags: readonly string[]) => void told.push(`remount ${target} ${flags.join()}`),
      umountTree: (target: string) => {
        if (target === busy) throw new Error(`umount "${target}": EBUSY`)
        told.push(`umount ${target}`)
        return [target]
      },
    },
    block: {
      swapOn: (path: string) => void told.push(`swapon ${path}`),
      swapOff: (path: string) => void told.push(`swapoff ${path}`),
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
    mountVolumes({ kernel: doors, spawn: notHere } as unknown as Parameters<typeof mountVolumes>[0]),
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
  return { store, runtime, told, ask, drop, hold: (target: string) => (busy = target), settled: () => runtime.settled() }
}

const answered = (store: Store) => store.list(VolumeMountStatus).map(({ metadata, spec }) => `${metadata.id} ${spec.target}`)

describe('volumes', () => {
  test('are mounted parents first, and everybody who asked is told', async () => {
    const { store, runtime, told, ask, settled } = machine()
    ask('a', '/var/lib')
    ask('b', '/etc/cni')
    runtime.start()
    await settled()
    expect(told).toEqual([])
    ask('c', 'EPHEMERAL', { secure: true })
    ask('d', 'EPHEMERAL', { readOnly: true })
    ask('e', 's-spare')
    await settled()
    expect(told).toEqual([
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

  test('follow who asks: less is asked for when one goes, and the last to go unmounts before it is let go', async () => {
    const { store, runtime, told, ask, drop, settled } = machine()
    runtime.start()
    ask('c', 'EPHEMERAL', { secure: true })
    ask('d', 'EPHEMERAL', { readOnly: true })
    await settled()
    told.length = 0
    drop('c')
    await settled()
    expect(told).toEqual(['remount /var ro'])
    expect(answered(store)).toEqual(['d /var'])
    drop('d')
    await settled()
    expect(told.at(-1)).toBe('umount /var')
    expect(store.get(MountStatus, 'EPHEMERAL')).toBeUndefined()
    expect(store.get(VolumeMountRequest, 'd')?.metadata.finalizers ?? []).toEqual([])
    runtime.stop()
  })

  test('are all unmounted, last first, when volumes are given up; one that is in use holds that up', async () => {
    const { store, runtime, told, ask, hold, settled } = machine()
    runtime.start()
    for (const [id, volume] of [
      ['c', 'EPHEMERAL'],
      ['b', '/etc/cni'],
      ['e', 's-spare'],
    ] as const)
      ask(id, volume)
    await settled()
    told.length = 0
    hold('/var')
    store.teardown(VolumeLifecycle, 'lifecycle')
    await settled()
    expect(told).toEqual(['umount /etc/cni', 'swapoff /dev/vdb1'])
    expect(store.get(VolumeLifecycle, 'lifecycle')?.metadata.finalizers).toEqual(['block.MountController'])
    runtime.stop()
  })

  test('whose mount fails are tried again and hold nobody up', async () => {
    const { store, runtime, told, ask, settled } = machine()
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
    expect(told.some((line) => line.includes('/opt '))).toBe(false)
    runtime.stop()
  })
})
