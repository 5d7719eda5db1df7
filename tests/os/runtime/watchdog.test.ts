import { expect, test } from 'bun:test'
import { silent } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import { MachineConfig } from '../../../src/os/config/resources/machine-config.ts'
import { applyWatchdog, configWatchdog } from '../../../src/os/runtime/controllers/watchdog.ts'
import { WatchdogTimerStatus } from '../../../src/os/runtime/resources/watchdog-timer.ts'

const config = (timeout: string) => `apiVersion: v1alpha1\nkind: WatchdogTimerConfig\ndevice: /dev/watchdog0\n${timeout}`

test('the watchdog of the configuration is started, fed, changed and stopped', async () => {
  const store = new Store()
  const runtime = new Runtime(store, { log: silent })
  const calls: string[] = []
  const fed = Promise.withResolvers<void>()
  const watchdog = {
    openWatchdog(path: string, seconds: number) {
      calls.push(`open ${path} ${seconds}`)
      // The hardware of this test knows only short times, so that it is hungry soon.
      const timeout = seconds === 10 ? 0.03 : seconds
      return { timeout, feed: () => fed.resolve(), disarm: () => void calls.push(`disarm ${seconds}`) }
    },
  }
  runtime.register(configWatchdog, applyWatchdog({ watchdog }))
  runtime.start()
  store.put(MachineConfig, 'v1alpha1', config(''))
  await runtime.settled()
  expect(store.get(WatchdogTimerStatus, 'timer')?.spec).toEqual({ device: '/dev/watchdog0', timeout: '1m0s', feedInterval: '20s' })
  store.put(MachineConfig, 'v1alpha1', config('timeout: 10s\n'))
  await fed.promise
  expect(calls).toEqual(['open /dev/watchdog0 60', 'disarm 60', 'open /dev/watchdog0 10'])
  store.destroy(MachineConfig, 'v1alpha1')
  await runtime.settled()
  expect(calls.at(-1)).toBe('disarm 10')
  expect(store.get(WatchdogTimerStatus, 'timer')).toBeUndefined()
  runtime.stop()
})
