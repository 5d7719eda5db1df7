import { expect, test } from 'bun:test'
import { getEventListeners } from 'node:events'
import * as v from 'valibot'
import { defineResource } from '../../src/cosi/resource.ts'
import { Store } from '../../src/cosi/store.ts'
import { type Runner, type ServiceDefinition, Skip } from '../../src/supervise/definition.ts'
import { Supervisor, SupervisorError } from '../../src/supervise/supervisor.ts'
import { ManualClock, scripted, settle } from './scripted.ts'

const Lamp = defineResource({ type: 'Lamps.test.dev', namespace: 'test', spec: v.object({ lit: v.boolean() }) })

function node() {
  const clock = new ManualClock()
  const store = new Store()
  const supervisor = new Supervisor({ store, clock })
  const events = (id: string) => supervisor.get(id)?.events.map(({ state, message }) => `[${state}]: ${message}`)
  return { clock, store, supervisor, events }
}

const service = (id: string, more: Partial<ServiceDefinition> & Pick<ServiceDefinition, 'runner'>): ServiceDefinition => ({
  id,
  dependsOn: [],
  restart: 'always',
  ...more,
})

test('a service goes from waiting over preparing to running and reports what it waits for', async () => {
  const { store, supervisor, events } = node()
  const under = scripted()
  const over = scripted()
  let well = Promise.withResolvers<void>()
  supervisor.load(
    service('containerd', { runner: under.runner, health: { check: () => well.promise } }),
    service('apid', {
      runner: over.runner,
      dependsOn: ['containerd'],
      wait: (view) => (view.get(Lamp, 'one')?.spec.lit ? [] : ['api certificates']),
    }),
  )
  supervisor.start('apid', 'containerd')
  await settle()
  expect(events('apid')).toEqual([
    '[Starting]: Starting service',
    '[Waiting]: Waiting for service "containerd" to be "up", api certificates',
  ])
  store.put(Lamp, 'one', { lit: false })
  store.put(Lamp, 'one', { lit: true })
  await settle()
  expect(events('apid')?.at(-1)).toBe('[Waiting]: Waiting for service "containerd" to be "up"')
  well.resolve()
  await settle()
  expect(events('apid')?.slice(3)).toEqual(['[Preparing]: Running pre state', '[Preparing]: Creating service runner', '[Running]: started'])
  expect(supervisor.get('apid')?.pid).toBe(100)
  well = Promise.withResolvers()
})

test('a process that exits is restarted after five seconds', async () => {
  const { clock, supervisor, events } = node()
  const { runner, runs } = scripted()
  supervisor.load(service('cri', { runner }))
  supervisor.start('cri')
  await settle()
  runs[0]!.end(false, 'killed by SIGKILL')
  await settle()
  expect(events('cri')?.at(-1)).toBe('[Waiting]: killed by SIGKILL, starting again in 5s')
  await clock.advance(4999)
  expect(runs).toHaveLength(1)
  await clock.advance(1)
  expect(runs).toHaveLength(2)
  expect(supervisor.get('cri')?.state).toBe('Running')
})

test('a service that is restarted again and again keeps nothing of its earlier runs', async () => {
  const { clock, supervisor } = node()
  const { runner, runs } = scripted()
  const listeners: number[] = []
  const counting: Runner = (context) => {
    listeners.push(getEventListeners(context.signal, 'abort').length)
    return runner(context)
  }
  supervisor.load(service('cri', { runner: counting }))
  supervisor.start('cri')
  for (let times = 0; times < 5; times++) {
    await settle()
    runs[times]!.end(false, 'killed by SIGKILL')
    await settle()
    await clock.advance(5000)
  }
  expect(listeners).toHaveLength(6)
  expect(new Set(listeners).size).toBe(1)
})

test('a failing preparation is retried, and one without anything to run skips the service', async () => {
  const { clock, supervisor, events } = node()
  const { runner, runs } = scripted()
  let tries = 0
  const prepare = async () => {
    if (++tries === 1) throw new Error('pull "x": no route')
  }
  supervisor.load(
    service('etcd', { runner, prepare }),
    service('udevd', {
      runner,
      prepare: async () => {
        throw new Skip('not in a container')
      },
    }),
  )
  supervisor.start('etcd', 'udevd')
  await settle()
  expect(events('etcd')?.at(-1)).toBe('[Waiting]: pull "x": no route, starting again in 5s')
  expect(events('udevd')?.at(-1)).toBe('[Skipped]: Service skipped: not in a container')
  await clock.advance(5000)
  expect(supervisor.get('etcd')?.state).toBe('Running')
  expect(runs).toHaveLength(1)
})

test('restart policies: never takes the result of the run, untilSuccess restarts until a run succeeds', async () => {
  const { clock, supervisor } = node()
  const once = scripted()
  const until = scripted()
  supervisor.load(
    service('once', { runner: once.runner, restart: 'never' }),
    service('until', { runner: until.runner, restart: 'untilSuccess' }),
  )
  supervisor.start('once', 'until')
  await settle()
  once.runs[0]!.end(false, 'exited with code 1')
  until.runs[0]!.end(false, 'exited with code 1')
  await clock.advance(5000)
  expect(supervisor.get('once')?.state).toBe('Failed')
  expect(until.runs).toHaveLength(2)
  until.runs[1]!.end(true, 'exited with code 0')
  await settle()
  expect(supervisor.get('until')?.state).toBe('Finished')
})

test('stop sends SIGTERM, and SIGKILL to who does not hear it', async () => {
  const { clock, supervisor, events } = node()
  const { runner, runs } = scripted(['SIGKILL'])
  supervisor.load(service('deaf', { runner, stopTimeout: 3000 }))
  supervisor.start('deaf')
  await settle()
  const stopped = supervisor.stop('deaf')
  await clock.advance(2999)
  expect(runs[0]!.signals).toEqual(['SIGTERM'])
  await clock.advance(1)
  await stopped
  expect(runs[0]!.signals).toEqual(['SIGTERM', 'SIGKILL'])
  expect(events('deaf')?.slice(-3)).toEqual([
    '[Stopping]: Sending SIGTERM',
    '[Stopping]: No end after 3s, sending SIGKILL',
    '[Finished]: Service stopped',
  ])
})

test('a process that cannot be killed leaves the service failed', async () => {
  const { clock, supervisor } = node()
  const { runner } = scripted([])
  supervisor.load(service('stone', { runner }))
  supervisor.start('stone')
  await settle()
  void supervisor.stop('stone')
  await clock.advance(20_000)
  expect(supervisor.get('stone')?.state).toBe('Failed')
})

test('stop is accepted while a service waits for conditions or for its restart', async () => {
  const { supervisor } = node()
  const { runner, runs } = scripted()
  supervisor.load(service('waiting', { runner, dependsOn: ['nobody'] }), service('again', { runner }))
  supervisor.start('waiting', 'again')
  await settle()
  runs[0]!.end(false, 'crashed')
  await settle()
  await supervisor.stop('waiting', 'again')
  expect(supervisor.list().map(({ id, state }) => `${id} ${state}`)).toEqual(['again Finished', 'waiting Finished'])
})

test('all services stop, dependents first, and none starts any more', async () => {
  const { supervisor } = node()
  const order: string[] = []
  const definitions = [
    ['containerd', []],
    ['apid', ['containerd']],
    ['cri', []],
    ['etcd', ['cri']],
    ['kubelet', ['cri']],
  ] as const
  for (const [id, dependsOn] of definitions) supervisor.load(service(id, { runner: scripted().runner, dependsOn }))
  supervisor.start('containerd', 'apid', 'cri', 'etcd', 'kubelet')
  await settle()
  supervisor.subscribe(({ id, state }) => state === 'Finished' && order.push(id))
  await supervisor.stopAll()
  expect(order.indexOf('apid')).toBeLessThan(order.indexOf('containerd'))
  expect(Math.max(order.indexOf('etcd'), order.indexOf('kubelet'))).toBeLessThan(order.indexOf('cri'))
  expect(order).toHaveLength(5)
  expect(() => supervisor.start('cri')).toThrow(SupervisorError)
})

test('what a service starts without but may use ends after it, and stays with it', async () => {
  const { supervisor } = node()
  const [under, over] = [scripted(), scripted()]
  supervisor.load(
    service('apid', { runner: over.runner, outlivedBy: ['containerd'] }),
    service('containerd', { runner: under.runner }),
    service('cri', { runner: scripted().runner }),
  )
  supervisor.start('apid')
  await settle()
  expect(supervisor.get('apid')?.state).toBe('Running')
  supervisor.start('containerd', 'cri')
  await settle()
  const states = () => supervisor.list().map(({ id, state }) => `${id} ${state}`)
  await supervisor.stopAll({ keep: ['apid'] })
  expect(states()).toEqual(['apid Running', 'containerd Running', 'cri Finished'])
  const order: string[] = []
  supervisor.subscribe(({ id, state }) => void (state === 'Finished' && order.push(id)))
  await supervisor.stopAll()
  expect(order).toEqual(['apid', 'containerd'])
})

test('stopAll with keep leaves those and what they need', async () => {
  const { supervisor } = node()
  for (const [id, dependsOn] of [
    ['containerd', []],
    ['apid', ['containerd']],
    ['cri', []],
  ] as const)
    supervisor.load(service(id, { runner: scripted().runner, dependsOn }))
  supervisor.start('containerd', 'apid', 'cri')
  await settle()
  await supervisor.stopAll({ keep: ['apid'] })
  expect(supervisor.list().map(({ id, state }) => `${id} ${state}`)).toEqual(['apid Running', 'containerd Running', 'cri Finished'])
})

test('health: short intervals at first, failures count after the initial delay, changes are reported once', async () => {
  const { clock, supervisor, events } = node()
  const { runner } = scripted()
  let wrong: string | undefined = 'connection refused'
  const health = {
    async check() {
      if (wrong) throw new Error(wrong)
    },
  }
  supervisor.load(service('kubelet', { runner, health }))
  supervisor.start('kubelet')
  await clock.advance(900)
  expect(supervisor.get('kubelet')?.health.unknown).toBe(true)
  await clock.advance(1000)
  expect(supervisor.get('kubelet')?.health).toMatchObject({ unknown: false, healthy: false, lastMessage: 'connection refused' })
  wrong = undefined
  await clock.advance(1000)
  expect(supervisor.get('kubelet')?.health.healthy).toBe(true)
  wrong = 'no route'
  await clock.advance(15_000)
  expect(events('kubelet')?.slice(3)).toEqual([
    '[Running]: started',
    '[Running]: Health check failed: connection refused',
    '[Running]: Health check successful',
    '[Running]: Health check failed: no route',
  ])
})

test('a health check that hangs fails', async () => {
  const { clock, supervisor } = node()
  supervisor.load(service('slow', { runner: scripted().runner, health: { check: () => new Promise(() => {}) } }))
  supervisor.start('slow')
  await clock.advance(3000)
  expect(supervisor.get('slow')?.health).toMatchObject({ healthy: false, lastMessage: 'no answer in time' })
})

test('an operator may do to a service what it allows, and gets a sentence', async () => {
  const { supervisor } = node()
  const { runner, runs } = scripted()
  supervisor.load(service('kubelet', { runner, operator: ['restart'] }), service('containerd', { runner: scripted().runner }))
  supervisor.start('kubelet', 'containerd')
  await settle()
  expect(await supervisor.operate('kubelet', 'restart')).toBe('Service "kubelet" restarted')
  await settle()
  expect(runs).toHaveLength(2)
  await expect(supervisor.operate('containerd', 'stop')).rejects.toThrow('service "containerd" does not support stop operation via API')
  await expect(supervisor.operate('nope', 'stop')).rejects.toThrow('service "nope" is not registered')
})

test('an OOM score lower than allowed is raised and an event reports it', async () => {
  const supervisor = new Supervisor({ store: new Store(), clock: new ManualClock(), oomFloor: 0 })
  let used: number | undefined
  const { runner } = scripted()
  const spy: typeof runner = (life) => {
    used = life.oom
    return runner(life)
  }
  supervisor.load(service('etcd', { runner: spy, oom: -998 }))
  supervisor.start('etcd')
  await settle()
  expect(used).toBe(0)
  expect(supervisor.get('etcd')?.events[1]?.message).toBe('OOM score -998 may not be set here, 0 is used')
})

test('until resolves when a service is up, and rejects when the signal is aborted first', async () => {
  const { supervisor } = node()
  supervisor.load(service('cri', { runner: scripted().runner }))
  const up = supervisor.until('cri', 'up')
  supervisor.start('cri')
  await up
  const abort = new AbortController()
  const down = supervisor.until('cri', 'down', abort.signal)
  abort.abort(new Error('enough'))
  await expect(down).rejects.toThrow('enough')
})
