import { afterEach, expect, test } from 'bun:test'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import { acquireConfig } from '../../../src/os/config/controllers/acquire.ts'
import { configMachineType } from '../../../src/os/config/controllers/machine-type.ts'
import { persistConfig, previousStatePath, statePath } from '../../../src/os/config/controllers/persistence.ts'
import { ConfigDesk } from '../../../src/os/config/desk.ts'
import { generate } from '../../../src/os/config/generate/generate.ts'
import { AcquireConfigSpec } from '../../../src/os/config/resources/acquire-config-spec.ts'
import { AcquireConfigStatus } from '../../../src/os/config/resources/acquire-config-status.ts'
import { MachineConfig } from '../../../src/os/config/resources/machine-config.ts'
import { MachineType } from '../../../src/os/config/resources/machine-type.ts'
import { MaintenanceServiceRequest } from '../../../src/os/runtime/resources/maintenance-service-request.ts'

const pair = { crt: 'YQ==', key: 'YQ==' }
const secrets = {
  cluster: { id: 'a', secret: 'b' },
  secrets: { bootstraptoken: 'c' },
  trustdinfo: { token: 'd' },
  certs: { etcd: pair, k8s: pair, k8saggregator: pair, k8sserviceaccount: { key: 'YQ==' }, os: pair },
}
const config = (type: 'controlplane' | 'worker', patch = '') =>
  generate(type, { clusterName: 'x', endpoint: 'https://10.0.0.1:6443', secrets }, { all: [patch] }).toString()
const first = config('worker')
const second = config('worker', 'machine: {sysctls: {a.b: "1"}}')

const running: Runtime[] = []
afterEach(() => {
  for (const runtime of running.splice(0)) runtime.stop()
})

/** A machine whose kernel is a folder in memory. */
function machine(kept: Record<string, string> = {}) {
  const store = new Store()
  const disk = new Map(Object.entries(kept))
  const told: string[] = []
  const files = {
    readTextIfThere: (path: string) => disk.get(path),
    writeAtomic: async (path: string, text: string) => void disk.set(path, text),
  }
  const parts = {
    store,
    log: silent,
    kernel: { mode: 'container', files },
    events: { publish: (type: string, { error }: Record<string, unknown>) => told.push(`${type}: ${String(error).split('\n')[0]}`) },
  } as unknown as ConstructorParameters<typeof ConfigDesk>[0]
  const runtime = new Runtime(store, { log: silent })
  running.push(runtime)
  runtime.register(acquireConfig(parts), persistConfig(parts.kernel), configMachineType)
  runtime.start()
  store.put(AcquireConfigSpec, 'config', {})
  const active = () => store.get(MachineConfig, 'v1alpha1')?.spec
  return { store, disk, told, runtime, desk: new ConfigDesk(parts), active }
}

test('a machine without a configuration waits for one, takes it and keeps it', async () => {
  const { store, disk, runtime, desk, active } = machine()
  await runtime.settled()
  expect(store.get(MaintenanceServiceRequest, 'maintenance')).toBeDefined()
  expect(desk.inMaintenance).toBe(true)
  expect(await desk.apply(first, 'reboot')).toMatchObject({ mode: 'no-reboot', warnings: [] })
  await runtime.settled()
  expect(active()).toBe(first)
  expect(disk.get(statePath)).toBe(first)
  expect(store.get(MaintenanceServiceRequest, 'maintenance')).toBeUndefined()
  expect(store.get(AcquireConfigStatus, 'config')).toBeDefined()
  expect(store.get(MachineType, 'machine-type')?.spec).toBe('worker')
})

test('a kept configuration is found, and the one before it stays beside the next', async () => {
  const { disk, runtime, desk, active, store } = machine({ [statePath]: first })
  await runtime.settled()
  expect(active()).toBe(first)
  expect(store.get(MaintenanceServiceRequest, 'maintenance')).toBeUndefined()
  await desk.apply(second, 'auto')
  await runtime.settled()
  expect([disk.get(statePath), disk.get(previousStatePath)]).toEqual([second, first])
})

test('a broken one is told and passed over for the one before it; without that the machine waits', async () => {
  const lucky = machine({ [statePath]: second.slice(0, 700), [previousStatePath]: first })
  await lucky.runtime.settled()
  expect(lucky.active()).toBe(first)
  expect(lucky.told[0]).toStartWith(`machine.ConfigLoadErrorEvent: ${statePath}: `)
  const unlucky = machine({ [statePath]: 'machine: [' })
  await unlucky.runtime.settled()
  expect(unlucky.desk.inMaintenance).toBe(true)
})

test('a staged configuration is kept and not in force', async () => {
  const { disk, runtime, desk, active } = machine({ [statePath]: first })
  await runtime.settled()
  await desk.apply(second, 'staged')
  await runtime.settled()
  expect(active()).toBe(first)
  expect(disk.get(statePath)).toBe(second)
})

test('one on trial is in force and not kept, and applying for good ends the trial', async () => {
  const { disk, runtime, desk, active } = machine({ [statePath]: first })
  await runtime.settled()
  await desk.apply(second, 'try', { trialFor: 3600_000 })
  await runtime.settled()
  expect(active()).toBe(second)
  expect(disk.get(statePath)).toBe(first)
  await desk.apply(second, 'no-reboot')
  await runtime.settled()
  expect(disk.get(statePath)).toBe(second)
})

test('a trial that nobody ends goes back', async () => {
  const { store, runtime, desk, active } = machine({ [statePath]: first })
  await runtime.settled()
  await desk.apply(second, 'try', { trialFor: 1 })
  await store.until(MachineConfig, 'v1alpha1', (resource) => resource?.spec === first, { signal: AbortSignal.timeout(5000) })
  expect(active()).toBe(first)
})

test('a dry run changes nothing and shows what would change', async () => {
  const { disk, runtime, desk, active } = machine({ [statePath]: first })
  await runtime.settled()
  const { details } = await desk.apply(second, 'auto', { dryRun: true })
  expect(details).toContain('+  sysctls:\n+    a.b: "1"')
  expect([active(), disk.get(statePath)]).toEqual([first, first])
})

test('what cannot be read or used is refused with all its errors', async () => {
  const { runtime, desk, active } = machine({ [statePath]: first })
  await runtime.settled()
  expect(desk.apply('machine:\n  typ: x\n', 'auto')).rejects.toThrow('machine.typ: unknown key "typ", did you mean "type"?')
  expect(desk.apply(first.replace('forwardKubeDNSToHost: true', 'forwardKubeDNSToHost: false'), 'auto')).rejects.toThrow(
    'machine.features.hostDNS',
  )
  expect(active()).toBe(first)
})
