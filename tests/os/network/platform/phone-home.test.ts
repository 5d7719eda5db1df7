import { afterEach, describe, expect, test } from 'bun:test'
import { makeClock } from '../../../../src/cosi/clock.ts'
import { createLogger } from '../../../../src/cosi/log.ts'
import { Runtime } from '../../../../src/cosi/runtime.ts'
import { Store } from '../../../../src/cosi/store.ts'
import { reportToPlatform } from '../../../../src/os/network/controllers/platform.ts'
import { reportEvents } from '../../../../src/os/network/controllers/platform-events.ts'
import { phoneHome, platformEvent } from '../../../../src/os/network/platform/phone-home.ts'
import { platforms } from '../../../../src/os/network/platform/platforms.ts'
import { NetworkStatus } from '../../../../src/os/network/resources/network-status.ts'
import { Events } from '../../../../src/os/runtime/events.ts'

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const clean of cleanups.splice(0)) await clean()
})

/** A platform that records what it is sent, and answers with a status. */
function listening(status = 204) {
  const received: unknown[] = []
  let wake = () => {}
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      received.push([request.method, request.headers.get('content-type'), await request.json()])
      wake()
      return new Response(null, { status })
    },
  })
  cleanups.push(() => server.stop(true))
  const until = async (count: number) => {
    while (received.length < count) await new Promise<void>((resolve) => (wake = resolve))
  }
  return { received, until, url: `http://127.0.0.1:${server.port}/events` }
}

/** Time that passes only in pauses. */
function steppedClock() {
  let now = 0
  const pauses: number[] = []
  const sleep = async (ms: number) => {
    pauses.push(ms)
    now += ms
  }
  return { pauses, clock: makeClock({ elapsed: () => now, sleep }) }
}

const sequence = (name: string, action: number, message?: string) => ({
  type: 'machine.SequenceEvent',
  payload: { sequence: name, action, ...(message && { error: { message } }) },
})
const status = (stage: number, ready: boolean) => ({ type: 'machine.MachineStatusEvent', payload: { stage, status: { ready } } })
const post = (type: string, msg = '') => ['POST', 'application/json', { type, msg }]

test('events of the machine are those that Equinix Metal expects', () => {
  const type = (event: Parameters<typeof platformEvent>[0]) => platformEvent(event)?.type
  expect(type(status(3, false))).toBe('activate')
  expect(type(status(4, true))).toBe('activate')
  expect([status(4, false), status(1, true)].map(type)).toEqual([undefined, undefined])
  expect(type({ type: 'machine.TaskEvent', payload: { task: 'loadConfig', action: 1 } })).toBe('talos.prov.config.loaded')
  expect(type({ type: 'machine.TaskEvent', payload: { task: 'loadConfig', action: 0 } })).toBeUndefined()
  expect(type({ type: 'machine.TaskEvent', payload: { task: 'install', action: 1 } })).toBe('talos.prov.os.installed')
  expect(type(sequence('stageUpgrade', 2))).toBe('talos.prov.os.upgraded')
  expect(type(sequence('reboot', 1))).toBe('talos.prov.host.rebooted')
  expect(platformEvent(sequence('install', 2, 'no disk'))).toEqual({ type: 'failure', msg: 'no disk' })
  expect(platformEvent(sequence('stageUpgrade', 2, 'no image'))).toEqual({ type: 'failure', msg: 'no image' })
  expect([sequence('upgrade', 2), sequence('reboot', 2), sequence('install', 2), sequence('boot', 2, 'x')].map(type)).toEqual(
    Array(4).fill(undefined),
  )
  expect(platformEvent({ type: 'machine.ConfigLoadErrorEvent', payload: { error: 'equinixMetal: broken' } })).toEqual({
    type: 'failure',
    msg: 'equinixMetal: broken',
  })
  expect(type({ type: 'machine.AddressEvent', payload: {} })).toBeUndefined()
})

describe('an event', () => {
  const activate = { type: 'activate', msg: '' }
  const never = new AbortController().signal

  test('is sent once, whatever the platform answers', async () => {
    for (const code of [200, 404, 500]) {
      const { received, url } = listening(code)
      await phoneHome(url, activate, makeClock(), never)
      expect(received).toEqual([post('activate')])
    }
  })

  test('that nobody answers is tried every second, for 5 minutes', async () => {
    const { clock, pauses } = steppedClock()
    const sent = phoneHome('http://127.0.0.1:1/', activate, clock, never)
    await expect(sent).rejects.toThrow('send event "activate" to the platform: no answer within 5 minutes: ')
    expect(pauses).toEqual(Array(300).fill(1000))
  })

  test('is given up when the machine ends', async () => {
    await expect(phoneHome('http://127.0.0.1:1/', activate, makeClock(), AbortSignal.abort())).rejects.toThrow('interrupted')
  })
})

/** The controllers of a machine that has its network, with the lines of its log. */
function machine(start: (parts: { log: ReturnType<typeof createLogger> }) => ReturnType<typeof reportEvents>, clock = makeClock()) {
  const lines: string[] = []
  const log = createLogger(({ level, message }) => lines.push(`${level} ${message}`))
  const store = new Store()
  const runtime = new Runtime(store, { log, clock })
  runtime.register(start({ log }))
  runtime.start()
  cleanups.push(() => runtime.stop())
  const connect = () =>
    store.put(NetworkStatus, 'status', { addressReady: true, connectivityReady: true, hostnameReady: true, etcFilesReady: true })
  return { lines, runtime, connect }
}

describe('a machine with em.events_url', () => {
  const started = (commandLine: string, platform = platforms.equinixMetal) => {
    const events = new Events()
    const sources: { waiting(): readonly number[] }[] = []
    const deliveries = { add: (source: (typeof sources)[number]) => sources.push(source) } as never
    const parts = machine(({ log }) => reportEvents({ platform, commandLine, events, clock: makeClock(), deliveries, log }))
    return { ...parts, events, sources }
  }

  test('reports in order what happened before it had its network and after, and nothing twice in a row', async () => {
    const { received, until, url } = listening()
    const { events, connect, sources } = started(`console=ttyS1 em.events_url=${url}`)
    const publish = ({ type, payload }: ReturnType<typeof sequence> | ReturnType<typeof status>) => events.publish(type, payload)
    events.publish('machine.ConfigLoadErrorEvent', { error: 'broken' })
    events.publish('machine.ConfigLoadErrorEvent', { error: 'broken' })
    publish(status(3, false))
    expect(sources[0]!.waiting()).toEqual([3])
    connect()
    await until(2)
    events.publish('machine.TaskEvent', { task: 'loadConfig', action: 1 })
    publish(sequence('reboot', 1))
    await until(4)
    expect(received).toEqual([
      post('failure', 'broken'),
      post('activate'),
      post('talos.prov.config.loaded'),
      post('talos.prov.host.rebooted'),
    ])
    while (sources[0]!.waiting()[0] !== 0) await Bun.sleep(1)
  })

  test('is the only one that reports', async () => {
    const { received, url } = listening()
    const others = [started('console=ttyS1'), started(`em.events_url=${url}`, platforms.aws)]
    for (const { connect, events, runtime, sources } of others) {
      connect()
      events.publish('machine.MachineStatusEvent', { stage: 3, status: { ready: false } })
      await runtime.settled()
      expect(sources).toEqual([])
    }
    expect(received).toEqual([])
    const { lines } = started('em.events_url=ftp://x')
    expect(lines).toEqual(['warn invalid kernel parameter ignored'])
  })
})

describe('a report of readiness', () => {
  const signalled = (ready: () => Promise<void>, clock = makeClock()) =>
    machine(() => reportToPlatform({ platform: { ...platforms.azure!, ready }, open: () => ({}) as never }), clock)

  test('is tried again, and made once', async () => {
    const { promise, resolve } = Promise.withResolvers<void>()
    let calls = 0
    const { lines, connect, runtime } = signalled(async () => {
      calls++
      if (calls === 1) throw new Error('the fabric is busy')
      resolve()
    })
    connect()
    await promise
    await runtime.settled()
    while (!lines.includes('info readiness reported to the platform')) await Bun.sleep(1)
    expect(calls).toBe(2)
  })

  test('that fails for 30 minutes is given up', async () => {
    let now = 0
    let calls = 0
    const failing = async () => {
      calls++
      now += 30 * 60_000
      throw new Error('the fabric is away')
    }
    const { lines, connect } = signalled(failing, makeClock({ elapsed: () => now }))
    connect()
    while (!lines.includes('error readiness not reported to the platform, giving up')) await Bun.sleep(5)
    expect(calls).toBe(1)
  })
})
