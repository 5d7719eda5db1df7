import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import { milliseconds } from '../../../document/quantity.ts'
import { declared, find } from '../../config/declared.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import type { Kernel } from '../../kernel.ts'
import { TimeServerStatus } from '../../network/resources/time-server.ts'
import { DevicesStatus } from '../../runtime/resources/devices-status.ts'
import { TimeSyncConfig } from '../documents/time-sync.ts'
import { type KernelTime, kernelClock } from '../led-clock.ts'
import { type LedClock, type Source, type SteadyTime, Synchronizer } from '../ntp/synchronizer.ts'
import { TimeStatus } from '../resources/time-status.ts'
import { sourceOf, steadyTime, type TellingTime } from '../sources.ts'

/** Without a `bootTimeout` of the configuration: this long, in milliseconds, what needs the right time waits for a time server. */
const usualPatience = 60_000
/** A clock set by more than this begins a new epoch: whoever counts on its steadiness begins anew. In seconds. */
const epochLimit = 15 * 60

/** What a machine's clock is kept right with; a test has its own. */
export interface SyncParts {
  readonly source: (name: string) => Source
  readonly clock: LedClock
  readonly time: SteadyTime
}

const partsOf = (time: KernelTime & TellingTime): SyncParts => ({
  source: (name) => sourceOf(name, time),
  clock: kernelClock(time),
  time: steadyTime(time),
})

/**
 * In a container the clock is the host's, and so is keeping it right; elsewhere it is ours unless that is switched off.
 * A machine that reaches no time server goes on with the time it has once its patience is over, and keeps trying.
 */
export const syncTime = (
  { mode, time }: { mode: Kernel['mode']; time: KernelTime & TellingTime },
  parts: SyncParts = partsOf(time),
): Controller => {
  let epoch = 0
  let inStep = false
  let since: number | undefined
  let toldOver = false
  return defineController({
    name: 'time.SyncController',
    inputs: {
      config: weak(MachineConfig, { id: 'v1alpha1' }),
      servers: weak(TimeServerStatus, { id: 'timeservers' }),
      devices: weak(DevicesStatus, { id: 'devices' }),
    },
    outputs: { status: exclusive(TimeStatus) },
    reconcile({ config, servers, devices, status, log, background, wakeIn }) {
      const found = declared(config.get('v1alpha1'))
      const wishes = find(found, TimeSyncConfig)
      const off = wishes ? wishes.enabled === false : found?.machine.time?.disabled === true
      if (mode === 'container' || off) return status.put('node', { synced: true, epoch, syncDisabled: true })
      const names = servers.get('timeservers')?.spec.timeServers ?? []
      since ??= parts.time.now()
      // The clock of a device is there when the devices are.
      const there = devices.get('devices')?.spec.ready === true || !names.some((name) => name.startsWith('/dev/'))
      if (names.length > 0 && there)
        background(`keep ${names.join(' ')}`, (signal, wake, tell) =>
          new Synchronizer({ sources: names.map(parts.source), clock: parts.clock, time: parts.time, log }).run(
            {
              inStep({ offset, stepped }) {
                const jumped = stepped && Math.abs(offset) > epochLimit
                if (jumped) epoch++
                const news = jumped || !inStep
                inStep = true
                tell()
                if (news) wake()
              },
              outOfReach: tell,
            },
            signal,
          ),
        )
      const patience = milliseconds(wishes?.bootTimeout ?? found?.machine.time?.bootTimeout) || usualPatience
      const left = inStep ? 0 : patience - (parts.time.now() - since) * 1000
      if (left > 0) wakeIn(left)
      else if (!inStep && !toldOver) {
        toldOver = true
        log.warn('no time server has answered, the machine goes on with the time it has', {
          after: `${patience}ms`,
          servers: names.join(', '),
        })
      }
      status.put('node', { synced: left <= 0, epoch, syncDisabled: false })
    },
  })
}
