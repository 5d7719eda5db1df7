import type { Area } from '../area.ts'
import { timeMethods } from './api/time.ts'
import { observeAdjtime } from './controllers/adjtime.ts'
import { keepTimeFloor, raiseClock } from './controllers/floor.ts'
import { syncTime } from './controllers/sync.ts'
import { resources } from './resource-types.ts'

/** Time synchronization. */
export const time: Area = {
  name: 'time',
  resources,
  parts({ kernel, version, log }) {
    // No machine runs this before it was built.
    const built = Date.parse(version.built)
    if (kernel.mode === 'metal' && Number.isFinite(built) && raiseClock(kernel.time, BigInt(built) * 1_000_000n))
      log.warn('clock was behind the build date, set forward', { time: version.built })
    return { controllers: [syncTime(kernel), observeAdjtime(kernel), keepTimeFloor(kernel)], methods: timeMethods(kernel) }
  },
}
