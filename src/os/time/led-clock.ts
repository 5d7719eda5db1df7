/** The kernel's clock as a synchronizer leads it: by its phase-locked loop when it is near, set when it is far. */
import type { Kernel } from '../kernel.ts'
import type { LedClock } from './ntp/synchronizer.ts'

/** The calls it takes. */
export type KernelTime = Pick<Kernel['time'], 'clock' | 'setClock' | 'adjustClock'>

/** Bits of adjtimex(2): led by the loop, a second is added, or left out, at the end of the day. */
const bits = { pll: 1, insertSecond: 0x10, deleteSecond: 0x20 } as const

/** Leads the machine's clock. */
export const kernelClock = (time: KernelTime): LedClock => ({
  slew({ offset, jitter, distance, leap, poll }) {
    const { pll, insertSecond, deleteSecond } = bits
    time.adjustClock({
      nano: true,
      offset: BigInt(Math.round(offset * 1e9)),
      // The kernel's own constant grows by four where microseconds are meant.
      constant: BigInt(Math.max(0, poll - 4)),
      status: pll | (leap === 1 ? insertSecond : leap === 2 ? deleteSecond : 0),
      maxError: BigInt(Math.round(distance * 1e6)),
      estimatedError: BigInt(Math.round(jitter * 1e6)),
    })
  },
  step(offset) {
    time.setClock(time.clock('realtime') + BigInt(Math.round(offset * 1e9)))
    // What the loop still had in mind was for the clock as it was; from here on it is in step.
    time.adjustClock({ nano: true, offset: 0n, status: bits.pll, maxError: 0n, estimatedError: 0n })
  },
})
