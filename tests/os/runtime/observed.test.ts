import { describe, expect, test } from 'bun:test'
import type { Controller } from '../../../src/cosi/controller.ts'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import { MountStatus } from '../../../src/os/block/resources/mount-status.ts'
import { VolumeStatus } from '../../../src/os/block/resources/volume-status.ts'
import { observeExtensions } from '../../../src/os/runtime/controllers/extension-status.ts'
import { observeKernelCmdline } from '../../../src/os/runtime/controllers/kernel-cmdline.ts'
import { observeMountStatus } from '../../../src/os/runtime/controllers/mount-status.ts'
import { observeSbom } from '../../../src/os/runtime/controllers/sbom-item.ts'
import { observeServicePids } from '../../../src/os/runtime/controllers/service-pid.ts'
import { ExtensionStatus } from '../../../src/os/runtime/resources/extension-status.ts'
import { KernelCmdline } from '../../../src/os/runtime/resources/kernel-cmdline.ts'
import { RuntimeMountStatus } from '../../../src/os/runtime/resources/mount-status.ts'
import { SBOMItem } from '../../../src/os/runtime/resources/sbom-item.ts'
import { ServicePID } from '../../../src/os/runtime/resources/service.ts'

async function run(controller: Controller, store = new Store()) {
  const runtime = new Runtime(store, { log: silent })
  runtime.register(controller)
  runtime.start()
  await runtime.settled()
  return { store, runtime }
}

/** Files in memory, by path. */
const filesOf = (texts: Record<string, string>) => ({
  exists: (path: string) => Object.keys(texts).some((file) => file.startsWith(`${path}/`)),
  list: (path: string) => Object.keys(texts).flatMap((file) => (file.startsWith(`${path}/`) ? [file.slice(path.length + 1)] : [])),
  readText: (path: string) => texts[path] ?? '',
})

test('the command line of the kernel is shown without its newline', async () => {
  const { store } = await run(observeKernelCmdline({ files: filesOf({ '/proc/cmdline': 'console=ttyS0 quiet\n' }) }))
  expect(store.get(KernelCmdline, 'cmdline')?.spec).toEqual({ cmdline: 'console=ttyS0 quiet' })
})

test.each<[what: string, text: string | undefined, ids: string[]]>([
  ['the extensions of the image are shown by their number', 'layers:\n- image: 0.sqsh\n  metadata: {name: agent, version: "7.2"}\n', ['0']],
  ['an image without extensions has none', '', []],
  ['a list that is missing is as an empty one', undefined, []],
  ['a damaged list shows none', 'layers: 7\n', []],
])('%s', async (_, text, ids) => {
  const { store } = await run(observeExtensions({ files: { readTextIfThere: () => text } }))
  expect(store.list(ExtensionStatus).map(({ metadata }) => metadata.id)).toEqual(ids)
})

test('mounted partitions are shown by their volume, directories are not', async () => {
  const store = new Store()
  const mount = (volumeID: string, encryptionProvider: string) => {
    store.put(MountStatus, volumeID, {
      spec: { volumeID, parentID: '', readOnly: false, detached: false, requesters: [], requesterIDs: [] },
      source: '/dev/vda6',
      target: '/var',
      filesystem: 'xfs',
      encryptionProvider,
      readOnly: false,
      projectQuotaSupport: false,
      detached: false,
    })
  }
  mount('EPHEMERAL', 'luks2')
  mount('/var/log', 'none')
  store.put(VolumeStatus, 'EPHEMERAL', { phase: 'ready', type: 'partition' })
  store.put(VolumeStatus, '/var/log', { phase: 'ready', type: 'directory' })
  await run(observeMountStatus, store)
  expect(store.list(RuntimeMountStatus).map(({ metadata, spec }) => [metadata.id, spec])).toEqual([
    [
      'EPHEMERAL',
      { source: '/dev/vda6', target: '/var', filesystemType: 'xfs', options: [], encrypted: true, encryptionProviders: ['luks2'] },
    ],
  ])
})

describe('processes of services', () => {
  const health = { unknown: true, healthy: false, message: '', lastChange: new Date(0) }
  const snapshot = (id: string, state: 'Running' | 'Waiting', pid?: number) => ({
    id,
    state,
    pid,
    health,
    starts: 1,
    steady: false,
    logFrom: 0,
    events: [],
  })
  const supervisor = (...snapshots: ReturnType<typeof snapshot>[]) => ({ subscribe: () => () => {}, list: () => snapshots })
  const observe = (readlink: (path: string) => string, ...snapshots: ReturnType<typeof snapshot>[]) =>
    // Only what the controller uses of the supervisor.
    observeServicePids({ supervisor: supervisor(...snapshots) as never, kernel: { files: { readlink } } })

  test('are shown with their mount namespace; a task runs in init', async () => {
    const links = (path: string) => `mnt:[${path}]`
    const { store } = await run(
      observe(links, snapshot('apid', 'Running', 42), snapshot('machined', 'Running'), snapshot('etcd', 'Waiting', 7)),
    )
    expect(store.list(ServicePID).map(({ metadata, spec }) => [metadata.id, spec])).toEqual([
      ['apid', { pid: 42, mountNamespace: 'mnt:[/proc/42/ns/mnt]' }],
      ['machined', { pid: process.pid, mountNamespace: `mnt:[/proc/${process.pid}/ns/mnt]` }],
    ])
  })

  test('that have just ended are left out', async () => {
    const gone = () => {
      throw Object.assign(new Error('readlink: no such file'), { code: 'ENOENT' })
    }
    const { store } = await run(observe(gone, snapshot('apid', 'Running', 42)))
    expect(store.list(ServicePID)).toEqual([])
  })
})

describe('the parts of the image', () => {
  const document = (...packages: object[]) => JSON.stringify({ spdxVersion: 'SPDX-2.3', packages })

  test('come from the documents of the image and of extensions; a name that is listed twice has the later version', async () => {
    const { store } = await run(
      observeSbom({
        files: filesOf({
          '/usr/share/spdx/ichor.spdx.json': document(
            { name: 'ichor-rootfs', versionInfo: '1.13.100', licenseDeclared: 'NOASSERTION' },
            {
              name: 'runc',
              versionInfo: '1.5.1',
              licenseDeclared: 'Apache-2.0',
              externalRefs: [{ referenceType: 'purl', referenceLocator: 'pkg:golang/runc@1.5.1' }],
            },
          ),
          '/usr/share/spdx/README': 'not a document',
          '/usr/local/share/spdx/gvisor.spdx.json': document({
            name: 'runc',
            versionInfo: '1.5.2',
            externalRefs: [
              { referenceType: 'purl', referenceLocator: 'pkg:golang/runc@1.5.2' },
              { referenceType: 'cpe23Type', referenceLocator: 'cpe:2.3:a:runc:runc:1.5.2' },
            ],
          }),
        }),
      }),
    )
    expect(store.list(SBOMItem).map(({ spec }) => spec)).toEqual([
      { name: 'ichor', version: '1.13.100' },
      {
        name: 'runc',
        version: '1.5.2',
        cpes: ['cpe:2.3:a:runc:runc:1.5.2'],
        purls: ['pkg:golang/runc@1.5.1', 'pkg:golang/runc@1.5.2'],
        extension: true,
      },
    ])
  })

  test('of other documents are shown when one is damaged', async () => {
    const { store } = await run(
      observeSbom({
        files: filesOf({
          '/usr/share/spdx/ichor.spdx.json': document({ name: 'etcd', versionInfo: '3.6.5' }),
          '/usr/local/share/spdx/broken.spdx.json': '{',
        }),
      }),
    )
    expect(store.list(SBOMItem).map(({ spec }) => spec)).toEqual([{ name: 'etcd', version: '3.6.5' }])
  })
})
