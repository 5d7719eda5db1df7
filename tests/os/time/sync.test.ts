import { describe, expect, test } from 'bun:test'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import { VolumeMountStatus } from '../../../src/os/block/resources/volume-mount.ts'
import { MachineConfig } from '../../../src/os/config/resources/machine-config.ts'
import { TimeServerStatus } from '../../../src/os/network/resources/time-server.ts'
import { DevicesStatus } from '../../../src/os/runtime/resources/devices-status.ts'
import { keepTimeFloor, lastTimePath } from '../../../src/os/time/controllers/floor.ts'
import { syncTime } from '../../../src/os/time/controllers/sync.ts'
import { TimeStatus } from '../../../src/os/time/resources/time-status.ts'

const second = 1_000_000_000n
const kernelTime = {
  clock: () => 0n,
  setClock: () => {},
  adjustClock: () => {
    throw new Error('not expected')
  },
  deviceClock: () => ({ offset: 0n, window: 0n }),
}

/** A machine whose clock and time servers are scripted: each answer an offset in seconds, or none. */
function machine(answers: (number | undefined)[], config?: string) {
  const store = new Store()
  const runtime = new Runtime(store, { log: silent })
  const corrections: string[] = []
  const polled: string[] = []
  const now = { seconds: 0 }
  const drained = Promise.withResolvers<void>()
  runtime.register(
    syncTime(
      { mode: 'metal', time: kernelTime },
      {
        source: (name) => ({
          name,
          async ask() {
            polled.push(name)
            const offset = answers.shift()
            if (offset === undefined) throw new Error('no answer')
            return { offset, delay: 0.001, leap: 0, rootDelay: 0, rootDispersion: 0 }
          },
        }),
        clock: {
          slew: ({ offset }) => void corrections.push(`slew ${offset}`),
          step: (offset) => void corrections.push(`step ${offset}`),
        },
        time: {
          now: () => now.seconds,
          // The script ends here: further sleeps never end.
          async sleep(seconds, signal) {
            if (answers.length === 0) {
              drained.resolve()
              await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
            }
            now.seconds += seconds
          },
        },
      },
    ),
  )
  if (config) store.put(MachineConfig, 'v1alpha1', config)
  store.put(TimeServerStatus, 'timeservers', { timeServers: ['ntp.example'] })
  const status = () => store.get(TimeStatus, 'node')?.spec
  return { store, runtime, corrections, polled, now, drained: drained.promise, status }
}

async function through({ runtime, drained, status }: ReturnType<typeof machine>) {
  runtime.start()
  await drained
  await runtime.settled()
  return status()
}

describe('the clock of a machine', () => {
  test('that is near is in step after the first answer, and slewed from the fourth', async () => {
    const one = machine([0.1, 0.1, 0.1, 0.1])
    expect(await through(one)).toEqual({ synced: true, epoch: 0, syncDisabled: false })
    expect(one.corrections).toEqual(['slew 0.1'])
    one.runtime.stop()
  })

  test('that is far off is stepped, and a new epoch starts when it was very far off', async () => {
    const near = machine([2])
    expect(await through(near)).toEqual({ synced: true, epoch: 0, syncDisabled: false })
    expect(near.corrections).toEqual(['step 2'])
    near.runtime.stop()
    const far = machine([-3600])
    expect(await through(far)).toEqual({ synced: true, epoch: 1, syncDisabled: false })
    far.runtime.stop()
  })

  test('without any answer counts as right after the boot timeout', async () => {
    const one = machine([undefined], 'version: v1alpha1\nmachine:\n  time:\n    bootTimeout: 5m\n')
    expect(await through(one)).toMatchObject({ synced: false })
    one.now.seconds = 301
    // Anything that wakes the controller shows it.
    one.store.put(TimeServerStatus, 'timeservers', { timeServers: ['ntp.example', 'ntp2.example'] })
    await one.runtime.settled()
    expect(one.status()).toEqual({ synced: true, epoch: 0, syncDisabled: false })
    one.runtime.stop()
  })

  test('is left alone where the configuration disables it', async () => {
    for (const config of [
      'version: v1alpha1\nmachine:\n  time:\n    disabled: true\n',
      'version: v1alpha1\nmachine: {}\n---\napiVersion: v1alpha1\nkind: TimeSyncConfig\nenabled: false\n',
    ]) {
      const one = machine([], config)
      one.runtime.start()
      await one.runtime.settled()
      expect(one.status()).toEqual({ synced: true, epoch: 0, syncDisabled: true })
      expect(one.polled).toEqual([])
      one.runtime.stop()
    }
  })

  test("with a PTP source is disciplined once the machine's devices are there", async () => {
    const one = machine([0, 0])
    one.store.put(TimeServerStatus, 'timeservers', { timeServers: ['/dev/ptp0'] })
    one.runtime.start()
    await one.runtime.settled()
    expect(one.polled).toEqual([])
    one.store.put(DevicesStatus, 'devices', { ready: true })
    await one.drained
    expect(one.polled).toEqual(['/dev/ptp0', '/dev/ptp0'])
    one.runtime.stop()
  })
})

const mounted = {
  volumeID: 'STATE',
  requester: 'machined',
  target: '/system/state',
  readOnly: false,
  detached: false,
  disableAccessTime: false,
  secure: false,
}

describe('the last known time', () => {
  function floor(kept: string | undefined, clock: bigint) {
    const store = new Store()
    const runtime = new Runtime(store, { log: silent })
    const state = { clock, written: [] as string[] }
    const setClock = (to: bigint) => {
      state.clock = to
    }
    const time = { ...kernelTime, clock: () => state.clock, setClock }
    const files = {
      readTextIfThere: () => kept,
      writeAtomic: async (path: string, text: string) => {
        expect(path).toBe(lastTimePath)
        state.written.push(text)
      },
    }
    runtime.register(keepTimeFloor({ mode: 'metal', time, files } as never))
    runtime.start()
    return { store, runtime, state }
  }

  test('sets a clock that is behind forward, once STATE is there', async () => {
    const { store, runtime, state } = floor('1795292960\n', 0n)
    await runtime.settled()
    expect(state.clock).toBe(0n)
    store.put(VolumeMountStatus, 'machined-STATE', mounted)
    await runtime.settled()
    expect(state.clock).toBe(1_795_292_960n * second)
    expect(state.written).toEqual([])
    runtime.stop()
  })

  test('leaves a clock alone that is ahead, or when the file holds no time', async () => {
    for (const kept of ['5', undefined, 'never', '99999999999999999999']) {
      const { store, runtime, state } = floor(kept, 100n * second)
      store.put(VolumeMountStatus, 'machined-STATE', mounted)
      await runtime.settled()
      expect(state.clock).toBe(100n * second)
      runtime.stop()
    }
  })

  test('is written when the servers have answered', async () => {
    const { store, runtime, state } = floor(undefined, 100n * second)
    store.put(VolumeMountStatus, 'machined-STATE', mounted)
    store.put(TimeStatus, 'node', { synced: true, epoch: 0, syncDisabled: false })
    await runtime.settled()
    expect(state.written).toEqual(['100\n'])
    runtime.stop()
  })
})
