import { closeSync, openSync } from 'node:fs'
import { check, libc } from '../libc.ts'
import { translated } from '../system-error.ts'

const c = libc({
  clock_settime: { args: ['i32', 'ptr'], returns: 'i32' },
  clock_gettime: { args: ['i32', 'ptr'], returns: 'i32' },
  adjtimex: { args: ['ptr'], returns: 'i32' },
})

const clocks = { realtime: 0, monotonic: 1, boottime: 7 } as const

/** The time of a clock in nanoseconds. */
export function clock(which: keyof typeof clocks): bigint {
  const time = new BigInt64Array(2)
  check('clock_gettime', c().clock_gettime(clocks[which], time), which)
  return (time[0] ?? 0n) * 1_000_000_000n + (time[1] ?? 0n)
}

/**
 * How far the clock of a device (`/dev/ptp0`) is ahead of the wall clock, and how long the measurement took; the quickest of
 * several. Nanoseconds.
 */
export function deviceClock(path: string): { offset: bigint; window: bigint } {
  const fd = translated('open', path, () => openSync(path, 'r'))
  try {
    const id = (~fd << 3) | 3 // FD_TO_CLOCKID of clock_gettime(2)
    const measure = () => {
      const time = new BigInt64Array(2)
      const before = clock('realtime')
      check('clock_gettime', c().clock_gettime(id, time), path)
      const after = clock('realtime')
      const there = (time[0] ?? 0n) * 1_000_000_000n + (time[1] ?? 0n)
      const window = after - before
      return { offset: there - (before + window / 2n), window }
    }
    let best = measure()
    for (let look = 1; look < 5; look++) {
      const next = measure()
      if (next.window < best.window) best = next
    }
    return best
  } finally {
    closeSync(fd)
  }
}

/** Sets the wall clock, in nanoseconds since 1970. */
export function setClock(nanoseconds: bigint): void {
  check('clock_settime', c().clock_settime(0, new BigInt64Array([nanoseconds / 1_000_000_000n, nanoseconds % 1_000_000_000n])))
}

/** The state of the kernel's clock discipline; offsets and errors in microseconds (nanoseconds when `nano`), frequency in ppm × 65536. */
export interface ClockState {
  /** 0 synchronized, 1 to 4 around a leap second, 5 not synchronized. */
  state: number
  status: number
  nano: boolean
  offset: bigint
  frequency: bigint
  maxError: bigint
  estimatedError: bigint
  constant: bigint
  tai: number
}

/** What adjtimex(2) may change. */
export type ClockAdjustment = Partial<Pick<ClockState, 'status' | 'offset' | 'frequency' | 'maxError' | 'estimatedError' | 'constant'>> & {
  nano?: boolean
}

/** Bits of the clock's status. */
const clockStatus = { pll: 1, insertSecond: 0x10, deleteSecond: 0x20, unsynchronized: 0x40, nano: 0x2000 } as const

/** adjtimex(2): reads, and with a change adjusts, the kernel's clock discipline. */
export function adjustClock(change: ClockAdjustment = {}): ClockState {
  const data = Buffer.alloc(208) // struct timex, 64-bit
  let modes = 0
  const set = (bit: number, offset: number, value: bigint | undefined) => {
    if (value === undefined) return
    modes |= bit
    data.writeBigInt64LE(value, offset)
  }
  set(1, 8, change.offset)
  set(2, 16, change.frequency)
  set(4, 24, change.maxError)
  set(8, 32, change.estimatedError)
  if (change.status !== undefined) {
    modes |= 0x10
    data.writeInt32LE(change.status, 40)
  }
  set(0x20, 48, change.constant)
  if (change.nano) modes |= 0x2000
  data.writeUInt32LE(modes, 0)
  const state = check('adjtimex', c().adjtimex(data))
  const status = data.readInt32LE(40)
  return {
    state,
    status,
    nano: (status & clockStatus.nano) !== 0,
    offset: data.readBigInt64LE(8),
    frequency: data.readBigInt64LE(16),
    maxError: data.readBigInt64LE(24),
    estimatedError: data.readBigInt64LE(32),
    constant: data.readBigInt64LE(48),
    tai: data.readInt32LE(160),
  }
}
