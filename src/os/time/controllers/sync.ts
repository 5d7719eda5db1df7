import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import { pause } from '../../../cosi/pause.ts'
import { milliseconds } from '../../../document/quantity.ts'
import { declared, find } from '../../config/declared.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import type { Kernel } from '../../kernel.ts'
import { TimeServerStatus } from '../../network/resources/time-server-status.ts'
import { type Clock, keepClock } from '../clock-keeper.ts'
import { TimeStatus } from '../resources/time-status.ts'
import { askTimeServer } from '../time-server.ts'

/** Without a `bootTimeout` of the configuration: this long, in milliseconds, what needs the right time waits for a time server. */
const usualPatience = 60_000

interface Parts {
  readonly mode: Kernel['mode']
  readonly time: Clock
}

interface Given {
  readonly ask?: typeof askTimeServer
  readonly sleep?: (milliseconds: number, signal: AbortSignal) => Promise<void>
}

/**
 * In a container the clock is the host's, and so is keeping it right; elsewhere it is ours unless that is switched off.
 * A machine that reaches no time server goes on with the time it has once its patience is over, and keeps trying.
 */
export const syncTime = ({ mode, time }: Parts, { ask = askTimeServer, sleep = pause }: Given = {}): Controller => {
  let epoch = 0
  let inStep = false
  let since: bigint | undefined
  let toldOver = false
  return defineController({
    name: 'time.SyncController',
    inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }), servers: weak(TimeServerStatus, { id: 'timeservers' }) },
    outputs: { status: exclusive(TimeStatus) },
    reconcile({ config, servers, status, background, wakeIn, log }) {
      const found = declared(config.get('v1alpha1'))
      const wishes = found && find(found, 'TimeSyncConfig')
      const off = wishes ? wishes.enabled === false : found?.machine.time?.disabled === true
      if (mode === 'container' || off) return status.put('node', { synced: true, epoch, syncDisabled: true })
      const list = servers.get('timeservers')?.spec.timeServers
      if (!list) return status.put('node', { synced: false, epoch, syncDisabled: false })
      since ??= time.clock('monotonic')
      background(`keep ${list.join(' ')}`, (signal, wake, tell) =>
        keepClock({
          servers: list,
          time,
          ask,
          sleep,
          signal,
          log,
          inStep(jumped) {
            if (jumped) epoch++
            const news = jumped || !inStep
            inStep = true
            tell()
            if (news) wake()
          },
          outOfReach: tell,
        }),
      )
      const patience = milliseconds(wishes?.bootTimeout ?? found?.machine.time?.bootTimeout) || usualPatience
      const left = inStep ? 0 : patience - Number((time.clock('monotonic') - since) / 1_000_000n)
      if (left > 0) wakeIn(left)
      else if (!inStep && !toldOver) {
        toldOver = true
        log.warn('no time server has answered, the machine goes on with the time it has', { after: `${patience}ms`, servers: list.join() })
      }
      status.put('node', { synced: left <= 0, epoch, syncDisabled: false })
    },
  })
}
