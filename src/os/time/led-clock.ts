/** The kernel's clock as the synchronizer disciplines it: slewed by the phase-locked loop when near, stepped when far off. */
import type { Kernel } from '../kernel.ts'
import type { LedClock } from './ntp/synchronizer.ts'

/** The calls it uses. */
export type KernelTime = Pick<Kernel['time'], 'clock' | 'setClock' | 'adjustClock'>

/** Bits of adjtimex(2): disciplined by the loop, a second is inserted, or deleted, at the end of the day. */
const bits = { pll: 1, insertSecond: 0x10, deleteSecond: 0x20 } as const

/** Disciplines the machine's clock. */
export const kernelClock = (time: KernelTime): LedClock => ({
  slew({ offset, jitter, distance, leap, poll }) {
    const { pll, insertSecond, deleteSecond } = bits
    time.adjustClock({
      nano: true,
      offset: BigInt(Math.round(offset * 1e9)),
      // In microsecond mode the kernel's own time constant is larger by four.
      constant: BigInt(Math.max(0, poll - 4)),
      status: pll | (leap === 1 ? insertSecond : leap === 2 ? deleteSecond : 0),
      maxError: BigInt(Math.round(distance * 1e6)),
      estimatedError: BigInt(Math.round(jitter * 1e6)),
    })
  },
  step(offset) {
    time.setClock(time.clock('realtime') + BigInt(Math.round(offset * 1e9)))
    // The loop's remaining correction was for the clock before the step.
    time.adjustClock({ nano: true, offset: 0n, status: bits.pll, maxError: 0n, estimatedError: 0n })
  },
})
