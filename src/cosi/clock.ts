/**
 * PID 1 uses two clocks. The wall clock is for time stamps: NTP on a machine without a battery, or an operator, may step it
 * by any amount in either direction at any moment. Everything that depends on a duration uses the monotonic clock.
 */
import { pause } from '../timing/pause.ts'

/** A point in time on the monotonic clock. */
export interface Deadline {
  /** Milliseconds left, 0 once it has passed. */
  readonly left: number
  readonly over: boolean
}

/** A machine's time; tests pass their own. */
export interface Clock {
  /** The wall clock, for time stamps and for comparison with foreign time stamps, such as those in certificates. */
  now(): Date
  /** Milliseconds since an arbitrary moment; never decreases and is never stepped. */
  elapsed(): number
  /** The deadline `limit` milliseconds from now. */
  deadline(limit: number): Deadline
  /** Resolves after `ms`, or as soon as the signal is aborted; never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

const never = new AbortController().signal

/** Builds a clock; what is not given is the system's. */
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

/** The system's clock. */
export const systemClock: Clock = makeClock()
