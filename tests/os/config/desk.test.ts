import { afterEach, expect, test } from 'bun:test'
import type { Runtime } from '../../../src/cosi/runtime.ts'
import { acquireConfig } from '../../../src/os/config/controllers/acquire.ts'
import { configMachineType } from '../../../src/os/config/controllers/machine-type.ts'
import { persistConfig } from '../../../src/os/config/controllers/persistence.ts'
import { endTrial } from '../../../src/os/config/controllers/trial.ts'
import { ConfigDesk } from '../../../src/os/config/desk.ts'
import { historyPath } from '../../../src/os/config/history.ts'
import { previousStatePath, statePath } from '../../../src/os/config/keep.ts'
import { AcquireConfigSpec } from '../../../src/os/config/resources/acquire-config-spec.ts'
import { AcquireConfigStatus, acquireId } from '../../../src/os/config/resources/acquire-config-status.ts'
import { MachineConfig } from '../../../src/os/config/resources/machine-config.ts'
import { MachineType } from '../../../src/os/config/resources/machine-type.ts'
import { trialPath } from '../../../src/os/config/trial.ts'
import { configHostname } from '../../../src/os/network/controllers/hostname.ts'
import { HostnameSpec } from '../../../src/os/network/resources/hostname-spec.ts'
import { configKernelParams } from '../../../src/os/runtime/controllers/kernel-param.ts'
import { KernelParamSpec } from '../../../src/os/runtime/resources/kernel-param-spec.ts'
import { MaintenanceServiceRequest } from '../../../src/os/runtime/resources/maintenance-service-request.ts'
import { config, machineInMemory } from './machine.ts'

const first = config('worker')
const second = config('worker', 'machine: {sysctls: {a.b: "1"}}')

const running: Runtime[] = []
afterEach(() => {
  for (const runtime of running.splice(0)) runtime.stop()
})

/** A machine with the controllers of its configuration. */
function machine(kept: Record<string, string> = {}, at?: { now: Date }) {
  const { machine: parts, store, disk, told, files, runtime, clock } = machineInMemory(kept, at)
  const reboots: string[] = []
  const desk = new ConfigDesk(parts, () => reboots.push('reboot'))
  running.push(runtime)
  store.register(MachineConfig as never)
  runtime.register(
    acquireConfig(parts),
    persistConfig(parts.kernel),
    configMachineType,
    endTrial(desk),
    configKernelParams,
    configHostname(),
  )
  runtime.start()
  store.put(AcquireConfigSpec, acquireId, {})
  const active = () => store.get(MachineConfig, 'v1alpha1')?.spec
  /** The same disk after a restart, so many seconds later. */
  const restart = async (seconds: number) => {
    runtime.stop()
    const next = machine(Object.fromEntries(disk), { now: new Date(clock.now.getTime() + seconds * 1000) })
    await next.runtime.settled()
    return next
  }
  return { store, disk, files, told, reboots, runtime, desk, active, restart, clock }
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
  expect(store.get(AcquireConfigStatus, acquireId)).toBeDefined()
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
  const lucky = machine({ [statePath]: `${second}machine: [`, [previousStatePath]: first })
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

test('a try ends with the machine, and the history says so', async () => {
  const { desk, runtime, restart, active, disk } = machine({ [statePath]: first })
  await runtime.settled()
  await desk.apply(second, 'try', { trialFor: 3600_000 })
  expect(active()).toBe(second)
  expect(disk.has(trialPath)).toBe(true)
  const next = await restart(10)
  expect(next.active()).toBe(first)
  expect(next.disk.has(trialPath)).toBe(false)
  expect(next.desk.history.list().map(({ mode, outcome, reason }) => [mode, outcome, reason])).toEqual([
    ['found', undefined, undefined],
    ['try', 'reverted', 'the machine restarted'],
  ])
})

test('one that waits to be confirmed is kept, outlives a restart and goes back when nobody confirms it', async () => {
  const { desk, runtime, restart, active, disk } = machine({ [statePath]: first })
  await runtime.settled()
  const { id, confirmBy } = await desk.apply(second, 'auto', { confirmWithin: 300_000 })
  expect(confirmBy).toEqual(new Date('2026-11-21T12:05:00Z'))
  await runtime.settled()
  expect([active(), disk.get(statePath)]).toEqual([second, second])
  const soon = await restart(100)
  expect(soon.active()).toBe(second)
  expect(Math.round(soon.desk.left()! / 1000)).toBe(200)
  const late = await soon.restart(201)
  expect([late.active(), late.disk.get(statePath)]).toEqual([first, first])
  expect(late.desk.left()).toBeUndefined()
  expect(late.desk.history.get(id)).toMatchObject({ outcome: 'reverted', reason: 'it was not confirmed in time' })
})

test('without a restart it goes back too, with the reboot it came with', async () => {
  const { desk, runtime, store, disk, reboots } = machine({ [statePath]: first })
  await runtime.settled()
  await desk.apply(second, 'reboot', { confirmWithin: 1 })
  await store.until(MachineConfig, 'persistent', ({ spec }) => spec === first, { signal: AbortSignal.timeout(5000) })
  await runtime.settled()
  expect(disk.get(statePath)).toBe(first)
  expect(reboots).toEqual(['reboot'])
})

test('one that is confirmed stays, one that is tried and confirmed is kept', async () => {
  const { desk, runtime, restart, active, disk } = machine({ [statePath]: first })
  await runtime.settled()
  const { id } = await desk.apply(second, 'auto', { confirmWithin: 300_000 })
  expect(await desk.confirm()).toBe(id)
  expect(desk.confirm()).rejects.toThrow('none waits to be confirmed')
  expect((await restart(1000)).active()).toBe(second)
  const tried = machine({ [statePath]: first })
  await tried.runtime.settled()
  await tried.desk.apply(second, 'try')
  await tried.desk.confirm()
  expect(tried.disk.get(statePath)).toBe(second)
  expect([active(), disk.has(trialPath)]).toEqual([second, false])
})

test('a machine that stops before the new one is kept begins with the one before', async () => {
  const { desk, runtime, restart, disk } = machine({ [statePath]: first })
  await runtime.settled()
  await desk.apply(second, 'auto', { confirmWithin: 300_000 })
  disk.set(statePath, first)
  const next = await restart(1)
  expect([next.active(), next.disk.has(trialPath)]).toEqual([first, false])
})

test('trials that make no sense are refused', async () => {
  const { desk, runtime } = machine({ [statePath]: first })
  await runtime.settled()
  expect(desk.apply(second, 'try', { confirmWithin: 1 })).rejects.toThrow('choose one of the two')
  expect(desk.apply(second, 'staged', { confirmWithin: 1 })).rejects.toThrow('before it is in force')
  expect(desk.apply(second, 'auto', { confirmWithin: 25 * 3600_000 })).rejects.toThrow('at most 24 hours')
  const empty = machine()
  await empty.runtime.settled()
  expect(empty.desk.apply(first, 'try')).rejects.toThrow('none to go back to')
})

test('a configuration that cannot be kept is not put in force', async () => {
  const { desk, runtime, files, active } = machine({ [statePath]: first })
  await runtime.settled()
  files.full = true
  expect(desk.apply(second, 'auto')).rejects.toThrow('ENOSPC')
  await Bun.sleep(0)
  expect(active()).toBe(first)
})

test('the last ten are remembered with who applied them, and any of them can be brought back', async () => {
  const { desk, runtime, active, disk } = machine({ [statePath]: first })
  await runtime.settled()
  const by = { roles: ['os:admin'], peer: '10.0.0.9', actor: 'alice' }
  for (let at = 1; at <= 12; at++) await desk.apply(config('worker', `machine: {sysctls: {a.b: "${at}"}}`), 'auto', { by })
  const entries = desk.history.list()
  expect(entries.map(({ id }) => id)).toEqual([4, 5, 6, 7, 8, 9, 10, 11, 12, 13])
  expect(entries.at(-1)).toMatchObject({ by, mode: 'auto', time: '2026-11-21T12:00:00.000Z' })
  await desk.restore(4, 'auto', { by })
  expect(active()).toContain('a.b: "3"')
  expect(desk.history.list().at(-1)).toMatchObject({ id: 14, restored: 4 })
  expect(desk.restore(1, 'auto')).rejects.toThrow('only 5, 6, 7, 8, 9, 10, 11, 12, 13, 14 are remembered')
  disk.set(historyPath, '{')
  expect(desk.history.list()).toEqual([])
})

test('a dry run changes nothing and shows what would change and what that does', async () => {
  const { disk, store, runtime, desk, active } = machine({ [statePath]: first })
  store.register(HostnameSpec as never, KernelParamSpec as never)
  await runtime.settled()
  const { details } = await desk.apply(second, 'auto', { dryRun: true })
  expect(details).toContain('+  sysctls:\n+    a.b: "1"')
  expect(details).toContain('  * kernel parameter "proc.sys.a.b" becomes "1"')
  expect(details).toContain('  + KernelParamSpecs.runtime.talos.dev/proc.sys.a.b')
  expect([active(), disk.get(statePath)]).toEqual([first, first])
  expect(desk.history.list()).toEqual([])
  expect((await desk.apply(first, 'auto', { dryRun: true })).details).toBe('Dry run: no changes.')
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

test('two at once are one too many', async () => {
  const { runtime, desk, active } = machine({ [statePath]: first })
  await runtime.settled()
  const [one, other] = await Promise.allSettled([desk.apply(second, 'auto'), desk.apply(first, 'auto')])
  expect([one.status, other.status]).toEqual(['fulfilled', 'rejected'])
  expect((other as PromiseRejectedResult).reason.message).toContain('another configuration is being applied')
  expect(active()).toBe(second)
})
