/** When the code of a service throws or rejects, only that run of the service ends. */
import { afterEach, describe, expect, test } from 'bun:test'
import { createLogger, type LogEntry } from '../../src/cosi/log.ts'
import { Store } from '../../src/cosi/store.ts'
import type { Run, ServiceDefinition } from '../../src/supervise/definition.ts'
import { Supervisor } from '../../src/supervise/supervisor.ts'
import { ManualClock, scripted, settle } from './scripted.ts'

const unhandled: unknown[] = []
process.on('unhandledRejection', (error) => unhandled.push(error))
afterEach(async () => {
  await new Promise(setImmediate)
  expect(unhandled.splice(0)).toEqual([])
})

function node() {
  const clock = new ManualClock()
  const entries: LogEntry[] = []
  const supervisor = new Supervisor({ store: new Store(), clock, log: createLogger((entry) => entries.push(entry)) })
  const last = (id: string) => supervisor.get(id)?.events.at(-1)
  return { clock, supervisor, last, logged: () => entries.map(({ message, fields }) => `${message}: ${(fields.error as Error).message}`) }
}

const broken = () => {
  throw new Error('broken')
}
const service = (id: string, more: Partial<ServiceDefinition>): ServiceDefinition => ({
  id,
  dependsOn: [],
  restart: 'always',
  runner: scripted().runner,
  ...more,
})

describe('a service', () => {
  test('whose condition throws at once is retried', async () => {
    const { clock, supervisor, last } = node()
    let throws = true
    supervisor.load(service('etcd', { wait: () => (throws ? broken() : []) }))
    supervisor.start('etcd')
    await settle()
    expect(last('etcd')).toMatchObject({ state: 'Waiting', message: 'broken, starting again in 5s' })
    throws = false
    await clock.advance(5000)
    expect(supervisor.get('etcd')?.state).toBe('Running')
  })

  test('that is never restarted fails when its condition throws', async () => {
    const { supervisor, last } = node()
    supervisor.load(service('etcd', { wait: broken, restart: 'never' }))
    supervisor.start('etcd')
    await settle()
    expect(last('etcd')).toMatchObject({ state: 'Failed', message: 'broken' })
  })

  const parts: Record<string, Partial<ServiceDefinition>> = {
    'preparation throws': { prepare: broken },
    'preparation rejects': { prepare: () => Promise.reject(new Error('broken')) },
    'runner throws': { runner: broken },
    'run ends in a rejection': {
      runner: async (): Promise<Run> => ({ description: 'started', exit: Promise.reject(new Error('broken')), kill() {} }),
    },
  }
  test.each(Object.keys(parts))('whose %s is tried again', async (name) => {
    const { supervisor, last } = node()
    supervisor.load(service('etcd', parts[name]!))
    supervisor.start('etcd')
    await settle()
    expect(last('etcd')).toMatchObject({ state: 'Waiting', message: 'broken, starting again in 5s' })
  })

  test.each([
    ['throws', broken],
    ['rejects', () => Promise.reject(new Error('broken'))],
  ])('whose health check %s is unhealthy and runs on', async (_, check) => {
    const { clock, supervisor } = node()
    supervisor.load(service('etcd', { health: { check } }))
    supervisor.start('etcd')
    await clock.advance(3000)
    expect(supervisor.get('etcd')).toMatchObject({ state: 'Running', health: { healthy: false, lastMessage: 'broken' } })
  })

  test('that cannot be killed still reaches a stopped state', async () => {
    const { clock, supervisor, last } = node()
    supervisor.load(service('etcd', { runner: async () => ({ description: 'started', exit: new Promise(() => {}), kill: broken }) }))
    supervisor.start('etcd')
    await settle()
    const stopped = supervisor.stop('etcd')
    await clock.advance(60_000)
    await stopped
    expect(last('etcd')).toMatchObject({ state: 'Failed', message: 'Service could not be stopped' })
  })

  test('continues when a listener throws, and other listeners are called', async () => {
    const { supervisor, logged } = node()
    const heard: string[] = []
    supervisor.subscribe(broken)
    supervisor.subscribe(({ state }) => heard.push(state))
    supervisor.load(service('etcd', {}))
    supervisor.start('etcd')
    await settle()
    expect(heard).toEqual(['Starting', 'Preparing', 'Preparing', 'Running'])
    expect(new Set(logged())).toEqual(new Set(['service event listener failed: broken']))
  })
})

describe('a run that was steady', () => {
  test('is restarted at once, also when the run before it was killed a moment ago', async () => {
    const { clock, supervisor, last } = node()
    const { runner, runs } = scripted()
    supervisor.load(service('apid', { runner, health: { check: async () => {} } }))
    supervisor.start('apid')
    for (let kills = 1; kills <= 10; kills++) {
      await clock.advance(1_000)
      runs.at(-1)!.end(false, 'killed by SIGKILL')
      await settle()
      await clock.advance(0)
      expect(supervisor.get('apid')?.events.findLast(({ step }) => step === 'retry')?.message).toBe(
        'killed by SIGKILL, starting again in 0s',
      )
      expect(runs).toHaveLength(kills + 1)
    }
    expect(last('apid')?.state).toBe('Running')
  })

  test('waits for the interval when it ends again and again, until time has passed', async () => {
    const { clock, supervisor, last } = node()
    const { runner, runs } = scripted()
    supervisor.load(service('apid', { runner, health: { check: async () => {} } }))
    supervisor.start('apid')
    const start = clock.elapsed()
    const dies = async () => {
      await settle()
      runs.at(-1)!.end(false, 'exited with code 1')
      await settle()
    }
    // What a crash loop costs: the burst, and then a start for each interval.
    while (clock.elapsed() < start + 60_000) {
      await dies()
      await clock.advance(last('apid')?.message.endsWith('in 5s') ? 5_000 : 0)
    }
    expect(runs.length).toBeLessThanOrEqual(1 + 10 + 12 + 6)
    await dies()
    await clock.advance(5_000)
    await clock.advance(100_000)
    for (let kills = 0; kills < 10; kills++) {
      const before = runs.length
      await dies()
      await clock.advance(0)
      expect(runs).toHaveLength(before + 1)
    }
    await dies()
    expect(last('apid')?.message).toBe('exited with code 1, starting again in 5s')
  })

  test('is one that was healthy before it ended: a service that dies before waits for the interval each time', async () => {
    const { clock, supervisor, last } = node()
    const { runner, runs } = scripted()
    let healthy = true
    supervisor.load(service('apid', { runner, health: { check: () => (healthy ? Promise.resolve() : broken()) } }))
    supervisor.start('apid')
    await clock.advance(100)
    healthy = false
    runs[0]!.end(false, 'killed by SIGKILL')
    await clock.advance(0)
    expect(runs).toHaveLength(2)
    for (let kills = 1; kills < 4; kills++) {
      await clock.advance(1_000)
      runs[kills]!.end(false, 'exited with code 1')
      await settle()
      expect(last('apid')?.message).toBe('exited with code 1, starting again in 5s')
      await clock.advance(5_000)
      expect(runs).toHaveLength(kills + 2)
    }
  })

  test('does not include a run that never was healthy, however long it lasted', async () => {
    const { clock, supervisor, last } = node()
    const { runner, runs } = scripted()
    supervisor.load(service('apid', { runner, health: { check: () => Promise.reject(new Error('refused')) } }))
    supervisor.start('apid')
    await clock.advance(60_000)
    runs[0]!.end(false, 'exited with code 1')
    await settle()
    expect(last('apid')?.message).toBe('exited with code 1, starting again in 5s')
  })

  test('does not become one by a step of the wall clock', async () => {
    const { clock, supervisor, last } = node()
    const { runner, runs } = scripted()
    supervisor.load(service('apid', { runner }))
    supervisor.start('apid')
    await settle()
    clock.step(86_400_000)
    runs[0]!.end(false, 'exited with code 1')
    await settle()
    expect(last('apid')?.message).toBe('exited with code 1, starting again in 5s')
  })
})
