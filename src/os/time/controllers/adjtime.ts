import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import { formatDuration } from '../../../wire/duration.ts'
import type { Kernel } from '../../kernel.ts'
import { AdjtimeStatus } from '../resources/adjtime-status.ts'
import { TimeStatus } from '../resources/time-status.ts'

/** Poll interval of the kernel's clock state, in milliseconds. */
const interval = 30_000

/** Status bits of adjtimex(2). */
const statusBits = [
  'STA_PLL',
  'STA_PPSFREQ',
  'STA_PPSTIME',
  'STA_FLL',
  'STA_INS',
  'STA_DEL',
  'STA_UNSYNC',
  'STA_FREQHOLD',
  'STA_PPSSIGNAL',
  'STA_PPSJITTER',
  'STA_PPSWANDER',
  'STA_PPSERROR',
  'STA_CLOCKERR',
  'STA_NANO',
  'STA_MODE',
  'STA_CLK',
] as const

/** What adjtimex(2) returns. */
const states = ['TIME_OK', 'TIME_INS', 'TIME_DEL', 'TIME_OOP', 'TIME_WAIT', 'TIME_ERROR'] as const

/** How the kernel disciplines the clock. */
export const observeAdjtime = ({ time }: { time: Pick<Kernel['time'], 'adjustClock'> }): Controller =>
  defineController({
    name: 'time.AdjtimeStatusController',
    inputs: { time: weak(TimeStatus, { id: 'node' }) },
    outputs: { status: exclusive(AdjtimeStatus) },
    reconcile({ status, wakeIn }) {
      const { state, status: bits, nano, offset, frequency, maxError, estimatedError, constant } = time.adjustClock()
      const unsynchronized = (bits & (1 << statusBits.indexOf('STA_UNSYNC'))) !== 0
      status.put('node', {
        offset: formatDuration(Number(offset) * (nano ? 1 : 1000)),
        // Units of 2^-16 parts per million.
        frequencyAdjustmentRatio: 1 + Number(frequency) / 65_536 / 1e6,
        maxError: formatDuration(Number(maxError) * 1000),
        estError: formatDuration(Number(estimatedError) * 1000),
        status: statusBits.filter((_, bit) => bits & (1 << bit)).join(' | '),
        constant: Number(constant),
        syncStatus: !unsynchronized,
        state: states[state] ?? `${state}`,
      })
      wakeIn(interval)
    },
  })
