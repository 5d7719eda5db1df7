import { expect, test } from 'bun:test'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import { observeContainerVolumes } from '../../../src/os/block/controllers/container-volumes.ts'
import { VolumeStatus } from '../../../src/os/block/resources/volume-status.ts'

test('the volumes of a container are directories, created parents first with mode and owner', async () => {
  const made: string[] = []
  const owned: string[] = []
  const links: string[] = []
  const store = new Store()
  const runtime = new Runtime(store, { log: silent })
  runtime.register(
    observeContainerVolumes({
      files: {
        mkdirAll: (path, { mode } = {}) => void made.push(`${path} ${mode?.toString(8)}`),
        chown: (path, uid, gid) => void owned.push(`${path} ${uid}:${gid}`),
        lstatIfThere: () => undefined,
        symlink: (target, path) => void links.push(`${path} -> ${target}`),
      },
    }),
  )
  runtime.start()
  await runtime.settled()
  expect(made).toContain('/var/lib/kubelet/seccomp/profiles 700')
  expect(made).toContain('/var/lib/containerd 0')
  expect(made.indexOf('/var/lib 700')).toBeLessThan(made.indexOf('/var/lib/etcd 700'))
  expect(owned).toEqual(['/var/lib/etcd 60:60', '/var/log/audit/kube 65534:65534'])
  expect(links).toEqual(['/var/run -> /run'])
  expect(store.get(VolumeStatus, 'ETCD')?.spec).toEqual({
    phase: 'ready',
    type: 'directory',
    mountSpec: {
      targetPath: 'etcd',
      selinuxLabel: '',
      projectQuotaSupport: false,
      parentId: '/var/lib',
      fileMode: 0o700,
      uid: 60,
      gid: 60,
    },
  })
  const phases = store.list(VolumeStatus).map(({ metadata: { id, labels }, spec: { phase } }) => [id, phase, labels])
  for (const [id, phase, labels] of phases) {
    expect([id, phase]).toEqual([id, id === 'META' ? 'waiting' : 'ready'])
    expect(labels).toEqual({ 'talos.dev/system-volume': '' })
  }
})
