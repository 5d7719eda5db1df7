/**
 * Time in PID 1 comes in two kinds. The wall clock belongs in time stamps: it may be stepped by any amount, either way, at any
 * moment (NTP on a machine without a battery, an operator). Whatever is decided by a duration uses the monotonic one.
 */
import { pause } from './pause.ts'

/** A moment some time from when it was made, by the monotonic clock. */
export interface Deadline {
  /** Milliseconds until it, 0 once it is past. */
  readonly left: number
  readonly over: boolean
}

/** A machine's time; a test brings its own. */
export interface Clock {
  /** The wall clock, for time stamps and for what others stamped, such as certificates. */
  now(): Date
  /** Milliseconds since a moment of no meaning; never goes back and is never stepped. */
  elapsed(): number
  /** The moment so many milliseconds from now. */
  deadline(limit: number): Deadline
  /** Resolves after `ms`, or as soon as the signal is aborted; never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

const never = new AbortController().signal

/** A clock of these parts; what is not given is the machine's. */
export function makeClock({
  now = () => new Date(),
  elapsed = () => performance.now(),
  sleep = (ms, signal = never) => pause(ms, signal),
}: Partial<Omit<Clock, 'deadline'>> = {}): Clock {
  return { now, elapsed, sleep, deadline: (limit) => deadlineBy(elapsed, limit) }
}

function deadlineBy(elapsed: () => number, limit: number): Deadline {
  const end = elapsed() + limit
  return {
    get left() {
      return Math.max(0, end - elapsed())
    },
    get over() {
      return elapsed() >= end
    },
  }
}

/** The machine's own clock. */
export const systemClock: Clock = makeClock()
