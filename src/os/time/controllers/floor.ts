import { type Controller, defineController, weak } from '../../../cosi/controller.ts'
import { VolumeMountStatus } from '../../block/resources/volume-mount.ts'
import type { Kernel } from '../../kernel.ts'
import { mountId } from '../../lifecycle/volumes.ts'
import { TimeStatus } from '../resources/time-status.ts'

/** Where the time that was known last is kept, on STATE. */
export const lastTimePath = '/system/state/last-time'

const hour = 3_600_000
const second = 1_000_000_000n

type Time = Pick<Kernel['time'], 'clock' | 'setClock'>

/** Sets a clock that is behind a moment known to be past, in nanoseconds since 1970. Tells whether it was. */
export function raiseClock(time: Time, floor: bigint): boolean {
  if (time.clock('realtime') >= floor) return false
  time.setClock(floor)
  return true
}

/**
 * The time that was known last as the clock's floor: a machine whose battery is empty wakes up in a time in which none of
 * its certificates is valid yet. It is written down every hour, and when the machine goes.
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
          log.warn('the clock was behind the time known last, it was set to that', { time: new Date(Number(text) * 1000).toISOString() })
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
