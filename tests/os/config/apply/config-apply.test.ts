import { afterEach, expect, test } from 'bun:test'
import type { Runtime } from '../../../../src/cosi/runtime.ts'
import { applyConfiguration } from '../../../../src/os/config/api/apply.ts'
import { configMethods } from '../../../../src/os/config/api/config-service.ts'
import { ConfigApply } from '../../../../src/os/config/apply/config-apply.ts'
import { acquireConfig } from '../../../../src/os/config/controllers/acquire.ts'
import { configMachineType } from '../../../../src/os/config/controllers/machine-type.ts'
import { persistConfig } from '../../../../src/os/config/controllers/persistence.ts'
import { endTrial } from '../../../../src/os/config/controllers/trial.ts'
import { historyPath } from '../../../../src/os/config/history/history.ts'
import { previousStatePath, statePath } from '../../../../src/os/config/keep.ts'
import { AcquireConfigSpec, AcquireConfigStatus, acquireId } from '../../../../src/os/config/resources/acquire-config.ts'
import { MachineConfig } from '../../../../src/os/config/resources/machine-config.ts'
import { MachineType } from '../../../../src/os/config/resources/machine-type.ts'
import { trialPath } from '../../../../src/os/config/trial/marker.ts'
import { configHostname } from '../../../../src/os/network/controllers/hostname.ts'
import { HostnameSpec } from '../../../../src/os/network/resources/hostname.ts'
import { configKernelParams } from '../../../../src/os/runtime/controllers/kernel-param.ts'
import { KernelParamSpec } from '../../../../src/os/runtime/resources/kernel-param.ts'
import { MaintenanceServiceRequest } from '../../../../src/os/runtime/resources/maintenance-service.ts'
import { decode, encode } from '../../../../src/rpc/codec.ts'
import { machine as machineEnums } from '../../../../src/rpc/enums.ts'
import { methodShape } from '../../../../src/rpc/schema.ts'
import { unfilled } from '../../../interop/always-filled.ts'
import { config, machineInMemory } from '../machine.ts'

const first = config('worker')
const second = config('worker', 'machine: {sysctls: {a.b: "1"}}')

const running: Runtime[] = []
afterEach(() => {
  for (const runtime of running.splice(0)) runtime.stop()
})

/** A machine with the controllers of its configuration. */
function machine(kept: Record<string, string> = {}) {
  const { machine: parts, store, disk, published, files, runtime, clock } = machineInMemory(kept)
  const reboots: string[] = []
  const time = { passed: 0 }
  const service = new ConfigApply(parts, { reboot: () => reboots.push('reboot'), elapsed: () => time.passed + performance.now() })
  running.push(runtime)
  store.register(MachineConfig as never)
  runtime.register(
    acquireConfig(parts, service.state),
    persistConfig(service.state),
    configMachineType,
    endTrial(service),
    configKernelParams,
    configHostname(),
  )
  runtime.start()
  store.put(AcquireConfigSpec, acquireId, {})
  const active = () => store.get(MachineConfig, 'v1alpha1')?.spec
  /** Lets so many seconds pass. */
  const pass = async (seconds: number) => {
    time.passed += seconds * 1000
    await service.tick()
    await runtime.settled()
  }
  /** The same disk after so many seconds more and a restart, with the wall clock put where it may be then. */
  const restart = async (seconds: number, wall = new Date(0)) => {
    await pass(seconds)
    runtime.stop()
    const next = machine(Object.fromEntries(disk))
    next.clock.now = wall
    await next.runtime.settled()
    return next
  }
  return { store, disk, files, published, reboots, runtime, service, active, pass, restart, clock }
}

test('a machine without a configuration waits for one, takes it and keeps it', async () => {
  const { store, disk, runtime, service, active } = machine()
  await runtime.settled()
  expect(store.get(MaintenanceServiceRequest, 'maintenance')).toBeDefined()
  expect(service.inMaintenance).toBe(true)
  expect(await service.apply(first, 'reboot')).toMatchObject({ mode: 'no-reboot', warnings: [] })
  await runtime.settled()
  expect(active()).toBe(first)
  expect(disk.get(statePath)).toBe(first)
  expect(store.get(MaintenanceServiceRequest, 'maintenance')).toBeUndefined()
  expect(store.get(AcquireConfigStatus, acquireId)).toBeDefined()
  expect(store.get(MachineType, 'machine-type')?.spec).toBe('worker')
})

test('a kept configuration is found, and the one before it stays beside the next', async () => {
  const { disk, runtime, service, active, store } = machine({ [statePath]: first })
  await runtime.settled()
  expect(active()).toBe(first)
  expect(store.get(MaintenanceServiceRequest, 'maintenance')).toBeUndefined()
  await service.apply(second, 'auto')
  await runtime.settled()
  expect([disk.get(statePath), disk.get(previousStatePath)]).toEqual([second, first])
})

test('a broken one is reported and replaced by the one before it; without that the machine waits', async () => {
  const lucky = machine({ [statePath]: `${second}machine: [`, [previousStatePath]: first })
  await lucky.runtime.settled()
  expect(lucky.active()).toBe(first)
  expect(lucky.published[0]).toStartWith(`machine.ConfigLoadErrorEvent: ${statePath}: `)
  const unlucky = machine({ [statePath]: 'machine: [' })
  await unlucky.runtime.settled()
  expect(unlucky.service.inMaintenance).toBe(true)
})

test('a staged configuration is kept and not in force', async () => {
  const { disk, runtime, service, active } = machine({ [statePath]: first })
  await runtime.settled()
  await service.apply(second, 'staged')
  await runtime.settled()
  expect(active()).toBe(first)
  expect(disk.get(statePath)).toBe(second)
})

test('one on trial is in force and not kept, and applying permanently ends the trial', async () => {
  const { disk, runtime, service, active } = machine({ [statePath]: first })
  await runtime.settled()
  await service.apply(second, 'try', { trialFor: 3600_000 })
  await runtime.settled()
  expect(active()).toBe(second)
  expect(disk.get(statePath)).toBe(first)
  await service.apply(second, 'no-reboot')
  await runtime.settled()
  expect(disk.get(statePath)).toBe(second)
})

test('a trial that nobody ends goes back', async () => {
  const { store, runtime, service, active } = machine({ [statePath]: first })
  await runtime.settled()
  await service.apply(second, 'try', { trialFor: 1 })
  await store.until(MachineConfig, 'v1alpha1', (resource) => resource?.spec === first, { signal: AbortSignal.timeout(5000) })
  expect(active()).toBe(first)
})

test('a try ends with the machine, and the history records it', async () => {
  const { service, runtime, restart, active, disk } = machine({ [statePath]: first })
  await runtime.settled()
  await service.apply(second, 'try', { trialFor: 3600_000 })
  expect(active()).toBe(second)
  expect(disk.has(trialPath)).toBe(true)
  const next = await restart(10)
  expect(next.active()).toBe(first)
  expect(next.disk.has(trialPath)).toBe(false)
  expect(next.service.history.list().map(({ mode, outcome, reason }) => [mode, outcome, reason])).toEqual([
    ['found', undefined, undefined],
    ['try', 'reverted', 'the machine restarted'],
  ])
})

test('one that waits to be confirmed is kept, outlives restarts and goes back when nobody confirms it', async () => {
  const { service, runtime, restart, active, disk } = machine({ [statePath]: first })
  await runtime.settled()
  const { id, confirmBy } = await service.apply(second, 'auto', { confirmWithin: 300_000 })
  expect(confirmBy).toEqual(new Date('2026-11-21T12:05:00Z'))
  await runtime.settled()
  expect([active(), disk.get(statePath)]).toEqual([second, second])
  const soon = await restart(100)
  expect(soon.active()).toBe(second)
  // A start costs what may have passed unnoted.
  expect(Math.round(soon.service.state.left()! / 1000)).toBe(185)
  const late = await soon.restart(184)
  expect([late.active(), late.disk.get(statePath)]).toEqual([first, first])
  expect(late.service.state.left()).toBeUndefined()
  expect(late.service.history.get(id)).toMatchObject({ outcome: 'reverted', reason: 'it was not confirmed in time' })
})

test('a wall clock that is set by a day ends no trial and prolongs none', async () => {
  for (const hours of [-24, 24]) {
    const { service, runtime, restart, pass, active, clock } = machine({ [statePath]: first })
    await runtime.settled()
    await service.apply(second, 'auto', { confirmWithin: 300_000 })
    clock.now = new Date(clock.now.getTime() + hours * 3600_000)
    await pass(100)
    expect([active(), Math.round(service.state.left()! / 1000)]).toEqual([second, 200])
    const next = await restart(0, new Date(clock.now.getTime() + hours * 3600_000))
    expect([next.active(), Math.round(next.service.state.left()! / 1000)]).toEqual([second, 185])
    await next.pass(186)
    expect(next.active()).toBe(first)
  }
})

test('a machine that never runs long enough to be confirmed goes back after some starts', async () => {
  let at = machine({ [statePath]: first })
  await at.runtime.settled()
  await at.service.apply(second, 'auto', { confirmWithin: 60_000 })
  for (let starts = 0; starts < 20; starts++) at = await at.restart(0)
  expect([at.active(), at.disk.get(statePath)]).toEqual([first, first])
})

test('without a restart it goes back too, with the reboot it came with', async () => {
  const { service, runtime, store, disk, reboots } = machine({ [statePath]: first })
  await runtime.settled()
  await service.apply(second, 'reboot', { confirmWithin: 1 })
  await store.until(MachineConfig, 'persistent', ({ spec }) => spec === first, { signal: AbortSignal.timeout(5000) })
  await runtime.settled()
  expect(disk.get(statePath)).toBe(first)
  expect(reboots).toEqual(['reboot', 'reboot'])
})

test('one that is confirmed stays, one that is tried and confirmed is kept', async () => {
  const { service, runtime, restart, active, disk } = machine({ [statePath]: first })
  await runtime.settled()
  const { id } = await service.apply(second, 'auto', { confirmWithin: 300_000 })
  expect(await service.confirm()).toBe(id)
  await expect(service.confirm()).rejects.toThrow('none waits to be confirmed')
  expect((await restart(1000)).active()).toBe(second)
  const tried = machine({ [statePath]: first })
  await tried.runtime.settled()
  await tried.service.apply(second, 'try')
  await tried.service.confirm()
  expect(tried.disk.get(statePath)).toBe(second)
  expect([active(), disk.has(trialPath)]).toEqual([second, false])
})

test('a machine that stops before the new one is kept begins with the one before', async () => {
  const { service, runtime, restart, disk } = machine({ [statePath]: first })
  await runtime.settled()
  await service.apply(second, 'auto', { confirmWithin: 300_000 })
  disk.set(statePath, first)
  const next = await restart(1)
  expect([next.active(), next.disk.has(trialPath)]).toEqual([first, false])
})

test('trials that make no sense are refused', async () => {
  const { service, runtime } = machine({ [statePath]: first })
  await runtime.settled()
  await expect(service.apply(second, 'try', { confirmWithin: 1 })).rejects.toThrow('choose one of the two')
  await expect(service.apply(second, 'staged', { confirmWithin: 1 })).rejects.toThrow('before it is in force')
  await expect(service.apply(second, 'auto', { confirmWithin: 25 * 3600_000 })).rejects.toThrow('at most 24 hours')
  const empty = machine()
  await empty.runtime.settled()
  await expect(empty.service.apply(first, 'try')).rejects.toThrow('none to go back to')
})

test('a configuration that cannot be kept is not put in force', async () => {
  const { service, runtime, files, active } = machine({ [statePath]: first })
  await runtime.settled()
  files.full = true
  await expect(service.apply(second, 'auto')).rejects.toThrow('ENOSPC')
  await Bun.sleep(0)
  expect(active()).toBe(first)
})

test('the last ten are remembered with who applied them, and any of them can be brought back', async () => {
  const { service, runtime, active, disk } = machine({ [statePath]: first })
  await runtime.settled()
  const by = { roles: ['os:admin'], peer: '10.0.0.9', actor: 'alice' }
  for (let at = 1; at <= 12; at++) await service.apply(config('worker', `machine: {sysctls: {a.b: "${at}"}}`), 'auto', { by })
  const entries = service.history.list()
  expect(entries.map(({ id }) => id)).toEqual([4, 5, 6, 7, 8, 9, 10, 11, 12, 13])
  expect(entries.at(-1)).toMatchObject({ by, mode: 'auto', time: '2026-11-21T12:00:00.000Z' })
  await service.restore(4, 'auto', { by })
  expect(active()).toContain('a.b: "3"')
  expect(service.history.list().at(-1)).toMatchObject({ id: 14, restored: 4 })
  await expect(service.restore(1, 'auto')).rejects.toThrow('only 5, 6, 7, 8, 9, 10, 11, 12, 13, 14 are remembered')
  disk.set(historyPath, '{')
  expect(service.history.list()).toEqual([])
})

const administrator = { roles: ['os:admin'], peer: '', actor: '' }

test('a dry run changes nothing and shows what would change and what that does', async () => {
  const { disk, store, runtime, service, active } = machine({ [statePath]: first })
  store.register(HostnameSpec as never, KernelParamSpec as never)
  await runtime.settled()
  const { details } = await service.apply(second, 'auto', { dryRun: true, by: administrator })
  expect(details).toContain('\n+ machine.sysctls["a.b"]: "1"\n')
  expect(details).toContain('  * kernel parameter "proc.sys.a.b" becomes "1"')
  expect(details).toContain('  + KernelParamSpecs.runtime.talos.dev/proc.sys.a.b')
  expect([active(), disk.get(statePath)]).toEqual([first, first])
  expect(service.history.list()).toEqual([])
  expect((await service.apply(first, 'auto', { dryRun: true })).details).toBe('Dry run: no changes.')
  expect((await service.apply(`# a comment\n${first}`, 'auto', { dryRun: true })).details).toContain('no changes but of comments')
})

test('what cannot be read or used is refused with all its errors', async () => {
  const { runtime, service, active } = machine({ [statePath]: first })
  await runtime.settled()
  await expect(service.apply('machine:\n  typ: x\n', 'auto')).rejects.toThrow('machine.typ: unknown key "typ", did you mean "type"?')
  await expect(service.apply(first.replace('forwardKubeDNSToHost: true', 'forwardKubeDNSToHost: false'), 'auto')).rejects.toThrow(
    'machine.features.hostDNS',
  )
  expect(active()).toBe(first)
})

test('two at once are one too many', async () => {
  const { runtime, service, active } = machine({ [statePath]: first })
  await runtime.settled()
  const [one, other] = await Promise.allSettled([service.apply(second, 'auto'), service.apply(first, 'auto')])
  expect([one.status, other.status]).toEqual(['fulfilled', 'rejected'])
  expect((other as PromiseRejectedResult).reason.message).toContain('another configuration is being applied')
  expect(active()).toBe(second)
})

test('the history names who applied what, and shows nothing of a text', async () => {
  const { runtime, service, store } = machine({ [statePath]: first })
  await runtime.settled()
  await service.apply(second, 'auto', { by: { roles: ['os:admin'], peer: '10.0.0.9', actor: 'admin' } })
  const history = configMethods(service).find(({ path }) => path === 'ichor.v1.ConfigService/History')!
  const { messages } = await (history.handle as (request: object, context: object) => { messages: { entries: object[] }[] })({}, { store })
  const [entry] = messages[0]!.entries
  expect(entry).toMatchObject({ id: 2, actor: 'admin', peer: '10.0.0.9', roles: ['os:admin'], active: true, kept: true })
  expect(Object.keys(entry!).toSorted()).toEqual(['active', 'actor', 'decided', 'id', 'kept', 'mode', 'peer', 'roles', 'sha256', 'time'])
})

test('what was in force is shown in a dry run to administrators only', async () => {
  const { runtime, service } = machine({ [statePath]: first })
  await runtime.settled()
  const of = async (options: object) => (await service.apply(second, 'auto', { dryRun: true, ...options })).details
  expect(await of({ by: administrator })).toContain('machine.sysctls')
  // A caller of other roles, and one who is not known.
  for (const options of [{ by: { ...administrator, roles: ['os:reader'] } }, {}])
    expect(await of(options)).toStartWith('Dry run: the configuration would be applied without a reboot.\nWhat will happen')
})

test.each(['machine.MachineService/ApplyConfiguration', 'ichor.v1.ConfigService/Apply', 'ichor.v1.ConfigService/Restore'] as const)(
  '%s shows values in a dry run to administrators only',
  async (path) => {
    const { runtime, service } = machine({ [statePath]: first })
    await runtime.settled()
    // The second configuration is in the history, the first in force.
    await service.apply(second, 'auto', { by: administrator })
    await service.restore(1, 'auto')
    const { request: requestType, reply: replyType } = methodShape(path)
    const { handle } = [applyConfiguration(service), ...configMethods(service)].find((method) => method.path === path)!
    const { AUTO: mode } = machineEnums.ApplyConfigurationRequest.Mode
    const which = path.endsWith('Restore') ? { id: 2 } : { data: Buffer.from(second) }
    const of = async (role: string) => {
      const request = decode(requestType, encode(requestType, { ...which, mode, dryRun: true }))
      const reply = await handle(request as never, { roles: new Set([role]), peer: '10.0.0.9', metadata: {} } as never)
      const sent = decode(replyType, encode(replyType, reply as object))
      if (path.startsWith('machine.')) expect(unfilled(path, [sent])).toEqual([])
      return JSON.stringify(sent)
    }
    expect(await of('os:admin')).toContain('machine.sysctls')
    const shown = await of('os:reader')
    expect(shown).toContain('Dry run: ')
    expect(shown).not.toContain('machine.sysctls')
  },
)

test.each([
  ['machine.type', config('controlplane')],
  ['machine.token', config('worker', 'machine: {token: eeeeee.eeeeeeeeeeeeeeee}')],
  ['cluster.id', config('worker', 'cluster: {id: other}')],
  ['cluster.secret', config('worker', `cluster: {secret: ${Buffer.alloc(32, 'x').toString('base64')}}`)],
])('another %s, by force, takes a reboot in every mode that has one, and is refused in the others', async (path, text) => {
  for (const mode of ['auto', 'reboot', 'staged', 'no-reboot', 'try'] as const) {
    const { runtime, service, reboots, active } = machine({ [statePath]: first })
    await runtime.settled()
    await expect(service.apply(text, mode)).rejects.toThrow('"talosctl apply-config --force"')
    const forced = service.apply(text, mode, { force: true })
    if (mode === 'no-reboot' || mode === 'try') await expect(forced).rejects.toThrow("can't be applied in immediate mode: ")
    else expect((await forced).mode).toBe(mode === 'auto' ? 'reboot' : mode)
    expect([path, mode, reboots.length, active()]).toEqual([path, mode, mode === 'auto' || mode === 'reboot' ? 1 : 0, first])
  }
})

test('what takes effect with a reboot only is applied with one, and never without', async () => {
  const { runtime, service, reboots, active, disk } = machine({ [statePath]: first })
  await runtime.settled()
  const files = config('worker', 'machine: {files: [{path: /var/a, content: x, op: create}]}')
  await expect(service.apply(files, 'no-reboot')).rejects.toThrow("can't be applied in immediate mode: machine.files takes effect")
  await expect(service.apply(files, 'try')).rejects.toThrow("can't be applied in immediate mode")
  expect(await service.apply(files, 'auto')).toMatchObject({
    mode: 'reboot',
    details: 'Applied configuration with a reboot; machine.files needs it',
  })
  expect([reboots, active(), disk.get(statePath)]).toEqual([['reboot'], first, files])
  const later = await service.apply(config('worker', 'machine: {env: {a: b}}'), 'auto')
  expect(later).toMatchObject({ mode: 'no-reboot', details: expect.stringContaining('takes effect later: machine.env.a when services') })
})
