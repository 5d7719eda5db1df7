import { expect, test } from 'bun:test'
import { makeClock } from '../../../../../src/cosi/clock.ts'
import { silent } from '../../../../../src/cosi/log.ts'
import { Runtime } from '../../../../../src/cosi/runtime.ts'
import { Store } from '../../../../../src/cosi/store.ts'
import { MachineConfig } from '../../../../../src/os/config/resources/machine-config.ts'
import { explain } from '../../../../../src/os/diagnosis/api/explain.ts'
import { configRootEtcd, configRootOS } from '../../../../../src/os/secrets/controllers/roots.ts'
import { resources as secrets } from '../../../../../src/os/secrets/resource-types.ts'
import { Supervisor } from '../../../../../src/supervise/supervisor.ts'
import { config } from '../../../../os/config/machine.ts'
import { talosctl } from '../../peer.ts'

const store = new Store()
store.register(...(secrets as never[]))
const runtime = new Runtime(store, { log: silent, clock: makeClock({ now: () => new Date('2026-11-21T09:50:00Z') }) })
runtime.register(configRootEtcd, configRootOS)
runtime.start()
const method = explain({
  store,
  runtime,
  supervisor: new Supervisor({ store }),
  service: () => {
    throw new Error('none')
  },
  kernel: { files: { statfs: () => ({ size: 1, available: 1, files: 1, filesFree: 1 }), readTextIfThere: () => undefined } } as never,
  log: silent,
})
const run = (...args: string[]) => talosctl([method], ['explain', ...args], { store })

test('the cause of a missing resource is explained', async () => {
  await runtime.settled()
  const { code, stdout } = await run('etcdrootsecret/etcd')
  expect(code).toBe(0)
  expect(stdout).toBe(
    [
      'EtcdRootSecrets.secrets.talos.dev/etcd is not healthy. MachineConfigs.config.talos.dev/v1alpha1: it is not there, and no controller here makes it',
      '',
      '1. MachineConfigs.config.talos.dev/v1alpha1: it is not there, and no controller here makes it',
      '2. EtcdRootSecrets.secrets.talos.dev/etcd: it is not there, secrets.RootEtcdController makes it',
      '   because of 1',
      '',
    ].join('\n'),
  )
})

test('an existing resource is reported as healthy, by either of its names', async () => {
  store.put(MachineConfig, 'v1alpha1', config('controlplane'))
  await runtime.settled()
  expect((await run('OSRootSecrets.secrets.talos.dev', 'os')).stdout).toBe('OSRootSecrets.secrets.talos.dev/os is healthy\n')
  expect((await run('osrootsecret/os')).stdout).toBe('OSRootSecrets.secrets.talos.dev/os is healthy\n')
})

test('unknown kinds are reported with the nearest', async () => {
  expect((await run('etcdrootsecrt/etcd')).stderr).toContain('did you mean "etcdrootsecret"?')
  expect((await run('a/b', 'c')).stderr).toContain('leave "c" out')
})

test('a node without certificates is called without them', async () => {
  const { code, stdout } = await talosctl([method], ['explain', 'osrootsecret/os', '--insecure', '-n', 'HERE'], {
    store,
    maintenance: true,
    env: { TALOSCONFIG: '/nonexistent' },
  })
  expect([code, stdout]).toEqual([0, 'OSRootSecrets.secrets.talos.dev/os is healthy\n'])
})
