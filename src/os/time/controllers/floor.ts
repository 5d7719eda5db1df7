import { type Controller, defineController, weak } from '../../../cosi/controller.ts'
import { mountId, VolumeMountStatus } from '../../block/resources/volume-mount.ts'
import type { Kernel } from '../../kernel.ts'
import { TimeStatus } from '../resources/time-status.ts'

/** Where the last known time is kept, on STATE. */
export const lastTimePath = '/system/state/last-time'

const hour = 3_600_000
const second = 1_000_000_000n

type Time = Pick<Kernel['time'], 'clock' | 'setClock'>

/** Sets a clock that is behind a moment known to be past, in nanoseconds since 1970. Returns whether it was behind. */
export function raiseClock(time: Time, floor: bigint): boolean {
  if (time.clock('realtime') >= floor) return false
  time.setClock(floor)
  return true
}

/**
 * Uses the last known time as the lower bound of the clock: a machine with an empty battery starts in a time in which none of
 * its certificates is valid yet. The time is written every hour and on shutdown.
 */
export const keepTimeFloor = ({ mode, time, files }: Pick<Kernel, 'mode' | 'time' | 'files'>): Controller => {
  let raised = false
  const write = () => files.writeAtomic(lastTimePath, `${time.clock('realtime') / second}\n`, { mode: 0o600 })
  return defineController({
    name: 'time.FloorController',
    inputs: { state: weak(VolumeMountStatus, { id: mountId('STATE') }), status: weak(TimeStatus, { id: 'node' }) },
    outputs: {},
    async reconcile({ state, status, log, wakeIn, background }) {
      if (mode === 'container' || !state.get(mountId('STATE'))) return
      if (!raised) {
        raised = true
        const text = files.readTextIfThere(lastTimePath)?.trim() ?? ''
        if (/^\d{1,12}$/.test(text) && raiseClock(time, BigInt(text) * second))
          log.warn('clock was behind the last known time, set forward', { time: new Date(Number(text) * 1000).toISOString() })
      }
      const known = status.get('node')?.spec
      if (!known?.synced || known.syncDisabled) return
      await write()
      wakeIn(hour)
      background('the last moment', async (signal) => {
        if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
        await write()
      })
    },
  })
}
