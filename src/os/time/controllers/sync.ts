import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import { milliseconds } from '../../../wire/duration.ts'
import { declared, find } from '../../config/public.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import { contacts } from '../../contacts.ts'
import type { Kernel } from '../../kernel.ts'
import { TimeServerStatus } from '../../network/resources/time-server.ts'
import { DevicesStatus } from '../../runtime/resources/devices-status.ts'
import { TimeSyncConfig } from '../documents/time-sync.ts'
import { type KernelTime, kernelClock } from '../led-clock.ts'
import { type LedClock, type Source, type SteadyTime, Synchronizer } from '../ntp/synchronizer.ts'
import { TimeStatus } from '../resources/time-status.ts'
import { type ReadableTime, sourceOf, steadyTime } from '../sources.ts'

/** Default of `bootTimeout`: how long services that need the right time wait for a time server, in milliseconds. */
const defaultBootTimeout = 60_000
/** A clock step larger than this starts a new epoch, which restarts what depends on a steady clock. In seconds. */
const epochLimit = 15 * 60

/** What synchronizes a machine's clock; a test passes its own. */
export interface SyncDependencies {
  readonly source: (name: string) => Source
  readonly clock: LedClock
  readonly time: SteadyTime
}

const dependenciesOf = (time: KernelTime & ReadableTime): SyncDependencies => ({
  source: (name) => sourceOf(name, time),
  clock: kernelClock(time),
  time: steadyTime(time),
})

/**
 * Synchronizes the clock. In a container the host does this. Elsewhere it is on unless the configuration disables it. A machine
 * that reaches no time server continues with the time it has after the boot timeout, and keeps trying.
 */
export const syncTime = (
  { mode, time }: { mode: Kernel['mode']; time: KernelTime & ReadableTime },
  dependencies: SyncDependencies = dependenciesOf(time),
): Controller => {
  let epoch = 0
  let inStep = false
  let since: number | undefined
  let reported = false
  return defineController({
    name: 'time.SyncController',
    contacts: contacts.timeServers,
    inputs: {
      config: weak(MachineConfig, { id: 'v1alpha1' }),
      servers: weak(TimeServerStatus, { id: 'timeservers' }),
      devices: weak(DevicesStatus, { id: 'devices' }),
    },
    outputs: { status: exclusive(TimeStatus) },
    reconcile({ config, servers, devices, status, log, background, wakeIn }) {
      const found = declared(config.get('v1alpha1'))
      const timeSync = find(found, TimeSyncConfig)
      const off = timeSync ? timeSync.enabled === false : found?.machine.time?.disabled === true
      if (mode === 'container' || off) return status.put('node', { synced: true, epoch, syncDisabled: true })
      const names = servers.get('timeservers')?.spec.timeServers ?? []
      since ??= dependencies.time.now()
      // PTP clocks exist once udev has created the devices.
      const there = devices.get('devices')?.spec.ready === true || !names.some((name) => name.startsWith('/dev/'))
      if (names.length > 0 && there)
        background(`keep ${names.join(' ')}`, (signal, wake, report) =>
          new Synchronizer({ sources: names.map(dependencies.source), clock: dependencies.clock, time: dependencies.time, log }).run(
            {
              inStep({ offset, stepped }) {
                const jumped = stepped && Math.abs(offset) > epochLimit
                if (jumped) epoch++
                const news = jumped || !inStep
                inStep = true
                report()
                if (news) wake()
              },
              outOfReach: report,
            },
            signal,
          ),
        )
      const timeout = milliseconds(timeSync?.bootTimeout ?? found?.machine.time?.bootTimeout) || defaultBootTimeout
      const left = inStep ? 0 : timeout - (dependencies.time.now() - since) * 1000
      if (left > 0) wakeIn(left)
      else if (!inStep && !reported) {
        reported = true
        log.warn('no time server has answered, continuing with the current time', {
          after: `${timeout}ms`,
          servers: names.join(', '),
        })
      }
      status.put('node', { synced: left <= 0, epoch, syncDisabled: false })
    },
  })
}
