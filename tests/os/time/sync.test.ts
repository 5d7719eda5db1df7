import { describe, expect, test } from 'bun:test'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import { MachineConfig } from '../../../src/os/config/resources/machine-config.ts'
import { TimeServerStatus } from '../../../src/os/network/resources/time-server-status.ts'
import { syncTime } from '../../../src/os/time/controllers/sync.ts'
import { TimeStatus } from '../../../src/os/time/resources/time-status.ts'
import { type askTimeServer, TimeServerError } from '../../../src/os/time/time-server.ts'

const second = 1_000_000_000n

/** A machine whose clock and time server are scripted: each answer an offset in nanoseconds, or none. */
function machine(answers: (bigint | undefined)[], config?: string) {
  const store = new Store()
  const runtime = new Runtime(store, { log: silent })
  const told: string[] = []
  const slept: number[] = []
  const clock = { realtime: 1_795_292_960n * second, monotonic: 0n }
  const ask: typeof askTimeServer = async (server) => {
    const offset = answers.shift()
    if (offset === undefined) throw new TimeServerError(server, 'timeout', 'no answer')
    return { offset, delay: 0n, stratum: 2 }
  }
  // The waiting ends with the script: a keeper that sleeps then sleeps for good.
  const sleep = (milliseconds: number, signal: AbortSignal) => {
    slept.push(milliseconds)
    if (answers.length > 0) return Promise.resolve()
    return new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
  }
  const time = {
    clock: (which: 'realtime' | 'monotonic' | 'boottime') => clock[which as 'realtime'],
    setClock(to: bigint) {
      told.push(`set ${(to - clock.realtime) / 1_000_000n}ms`)
      clock.realtime = to
    },
    adjustClock({ offset }: { offset?: bigint } = {}) {
      if (offset !== undefined) told.push(`lead ${offset / 1_000_000n}ms`)
      return { state: 0, status: 0, nano: true, offset: 0n, frequency: 0n, maxError: 0n, estimatedError: 0n, constant: 0n, tai: 0 }
    },
  }
  runtime.register(syncTime({ mode: 'metal', time }, { ask, sleep }))
  if (config) store.put(MachineConfig, 'v1alpha1', config)
  store.put(TimeServerStatus, 'timeservers', { timeServers: ['ntp.example'] })
  const status = () => store.get(TimeStatus, 'node')?.spec
  return { store, runtime, told, slept, clock, status }
}

/** Runs until the keeper has gone through its script. */
async function through({ runtime, slept, status }: ReturnType<typeof machine>, sleeps: number) {
  runtime.start()
  for (let turn = 0; turn < 1000 && slept.length < sleeps; turn++) await new Promise(setImmediate)
  await runtime.settled()
  expect(slept.length).toBe(sleeps)
  return status()
}

describe('the clock of a machine', () => {
  test('that is a little off is led, and asked after less and less often', async () => {
    const one = machine([100_000_000n, 1_000_000n, 0n])
    expect(await through(one, 3)).toEqual({ synced: true, epoch: 0, syncDisabled: false })
    expect(one.told).toEqual(['lead 100ms', 'lead 1ms', 'lead 0ms'])
    expect(one.slept).toEqual([64_000, 128_000, 256_000])
    one.runtime.stop()
  })

  test('that is far off is set, and when it was very far off a new epoch begins', async () => {
    const one = machine([2n * second, -3600n * second])
    expect(await through(one, 2)).toEqual({ synced: true, epoch: 1, syncDisabled: false })
    expect(one.told).toEqual(['set 2000ms', 'set -3600000ms'])
    one.runtime.stop()
  })

  test('is asked after again, with growing pauses, when no server answers', async () => {
    const one = machine([undefined, undefined, undefined, 0n])
    expect(await through(one, 4)).toEqual({ synced: true, epoch: 0, syncDisabled: false })
    expect(one.slept.slice(0, 3)).toEqual([1000, 2000, 4000])
    one.runtime.stop()
  })

  test('that no server answers for counts as right once the patience of the configuration is over', async () => {
    const one = machine([undefined], 'version: v1alpha1\nmachine:\n  time:\n    bootTimeout: 5m\n')
    expect(await through(one, 1)).toMatchObject({ synced: false })
    one.clock.monotonic = 301n * second
    // Anything that wakes the controller shows it.
    one.store.put(TimeServerStatus, 'timeservers', { timeServers: ['ntp.example', 'ntp2.example'] })
    await one.runtime.settled()
    expect(one.status()).toEqual({ synced: true, epoch: 0, syncDisabled: false })
    one.runtime.stop()
  })

  test('is left alone where the configuration says so', async () => {
    const one = machine([], 'version: v1alpha1\nmachine:\n  time:\n    disabled: true\n')
    expect(await through(one, 0)).toEqual({ synced: true, epoch: 0, syncDisabled: true })
    one.runtime.stop()
  })
})
