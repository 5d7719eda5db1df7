import { expect, test } from 'bun:test'
import { silent } from '../../../../src/cosi/log.ts'
import { Runtime } from '../../../../src/cosi/runtime.ts'
import { Store } from '../../../../src/cosi/store.ts'
import { MachineConfig } from '../../../../src/os/config/resources/machine-config.ts'
import { Backups } from '../../../../src/os/etcd/backup/backups.ts'
import type { BackupTarget } from '../../../../src/os/etcd/backup/target.ts'
import type { EtcdClient } from '../../../../src/os/etcd/client.ts'
import { backUpEtcd } from '../../../../src/os/etcd/controllers/backup.ts'
import { EtcdBackup, EtcdBackupStatus } from '../../../../src/os/etcd/resources/etcd-backup.ts'
import { EtcdSpec } from '../../../../src/os/etcd/resources/etcd-spec.ts'
import { Diagnostic } from '../../../../src/os/runtime/resources/diagnostic.ts'
import { Service } from '../../../../src/os/runtime/resources/service.ts'
import { RpcError } from '../../../../src/rpc/status.ts'
import { fakeTime } from '../../../support/fake-time.ts'

const document = {
  apiVersion: 'v1alpha1',
  kind: 'EtcdBackupConfig',
  schedule: '@every 1h',
  recipients: ['age1lvyvwawkr0mcnnnncaghunadrqkmuf9e6507x9y920xxpp866cnql7dp2z'],
  targets: [{ name: 'disk', folder: { volume: 'backups' } }],
}
const spec = {
  name: 'one',
  advertisedAddresses: [],
  image: '',
  extraArgs: {},
  listenPeerAddresses: [],
  listenClientAddresses: [],
}
const backup = {
  name: 'etcd-0a0b0c0d-20260101T000000Z-r9-0000000000000000.age',
  cluster: '0a0b0c0d',
  taken: new Date('2026-01-01T00:00:00Z'),
  revision: 9,
  hash: '0000000000000000',
  size: 5,
  state: 'damaged' as const,
}

test('declared backups are taken while etcd is healthy, and their state is published', async () => {
  using time = fakeTime()
  const store = new Store()
  const runtime = new Runtime(store, { log: silent, clock: time.clock })
  const attempts: string[] = []
  const local = () =>
    ({
      get: async () => undefined,
      async claim() {
        attempts.push('claim')
        throw new RpcError('Unavailable', 'etcd has no leader')
      },
      close() {},
    }) as unknown as EtcdClient
  const target = { name: 'disk', contents: async () => ({ backups: [backup], foreign: [] }) } as unknown as BackupTarget
  const unused = () => Promise.reject(new Error('unused'))
  const backups = new Backups({ clock: time.clock, log: silent, files: {} as never, local, etcdutl: unused, publish: () => {} })
  runtime.register(backUpEtcd(backups, () => target))
  runtime.start()
  store.put(EtcdSpec, 'etcd', spec)
  store.put(Service, 'etcd', { running: true, healthy: true, unknown: false })
  store.put(MachineConfig, 'v1alpha1', 'version: v1alpha1\nmachine: {type: controlplane}\ncluster: {id: x}\n')
  await time.pass(runtime, 20_000)
  expect([attempts, store.list(EtcdBackupStatus)]).toEqual([[], []])

  const declared = `version: v1alpha1\nmachine: {type: controlplane}\ncluster: {id: x}\n---\n${JSON.stringify(document)}\n`
  store.put(MachineConfig, 'v1alpha1', declared)
  await time.pass(runtime, 20_000)
  expect(attempts).toEqual(['claim'])
  expect(store.get(EtcdBackupStatus, 'etcd')?.spec).toMatchObject({ state: 'failed', lastError: { message: 'etcd has no leader' } })
  expect(store.get(Diagnostic, 'etcd-backup-failed')?.spec.message).toContain('etcd is not backed up: etcd has no leader')
  await time.pass(runtime, 90_000)
  expect(attempts.length).toBeGreaterThan(1)
  await backups.list(new AbortController().signal)
  await time.pass(runtime, 20_000)
  expect(store.get(EtcdBackup, `disk/${backup.name}`)?.spec).toMatchObject({ state: 'damaged', revision: 9 })
  expect(store.get(Diagnostic, 'etcd-backup-damaged')?.spec.details).toEqual([`disk/${backup.name}`])

  store.put(MachineConfig, 'v1alpha1', 'version: v1alpha1\n')
  await time.pass(runtime, 1_000)
  expect([store.list(EtcdBackupStatus), store.list(Diagnostic)]).toEqual([[], []])
  runtime.stop()
})
