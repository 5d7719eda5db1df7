/**
 * Keeps the clock in step with time servers: asks one, moves the clock, waits, asks again; rarer as long as the clock
 * runs well. A clock that is far off is set at once, one that is a little off is led there while it runs.
 */
import type { Logger } from '../../cosi/log.ts'
import type { Kernel } from '../kernel.ts'
import type { askTimeServer } from './time-server.ts'

/** Times in milliseconds, offsets in nanoseconds. */
export const limits = {
  shortestPoll: 32_000,
  longestPoll: 2_048_000,
  retry: 1_000,
  /** What is off by more is set instead of led. */
  slew: 400_000_000n,
  /** What is off by more makes a new epoch: certificates that were made before are made again. */
  epoch: 900_000_000_000n,
  /** What is off by less is well. */
  accuracy: 200_000_000n,
} as const

/** The clock of the machine. */
export type Clock = Pick<Kernel['time'], 'clock' | 'setClock' | 'adjustClock'>

/** What a keeper needs and whom it tells. */
export interface Keeping {
  readonly servers: readonly string[]
  readonly time: Clock
  readonly ask: typeof askTimeServer
  readonly signal: AbortSignal
  readonly log: Logger
  sleep(milliseconds: number, signal: AbortSignal): Promise<void>
  /** After each answer: whether the clock has jumped into another epoch. */
  inStep(jumped: boolean): void
  /** No server answers at the moment. */
  outOfReach(error: unknown): void
}

/** Goes on until the signal. */
export async function keepClock(keeping: Keeping): Promise<void> {
  const { servers, signal, log, sleep } = keeping
  let poll: number = limits.shortestPoll
  let retry: number = limits.retry
  while (!signal.aborted) {
    try {
      const { offset, server } = await firstAnswer(keeping)
      const jumped = move(keeping, offset)
      const well = magnitude(offset) < limits.accuracy
      poll = Math.max(limits.shortestPoll, Math.min(limits.longestPoll, well ? poll * 2 : poll / 2))
      retry = limits.retry
      if (!well || jumped) log.info('clock was off', { server, offset: `${offset / 1_000_000n}ms` })
      keeping.inStep(jumped)
      await sleep(poll, signal)
    } catch (error) {
      if (signal.aborted) return
      keeping.outOfReach(error)
      await sleep(servers.length === 0 ? limits.longestPoll : retry, signal)
      retry = Math.min(limits.shortestPoll, retry * 2)
    }
  }
}

async function firstAnswer({ servers, ask, time, signal }: Keeping) {
  let last: unknown = new Error('no time servers are known: set machine.time.servers')
  for (const server of servers) {
    try {
      return { server, ...(await ask(server, { now: () => time.clock('realtime'), signal })) }
    } catch (error) {
      if (signal.aborted) throw error
      last = error
    }
  }
  throw last
}

/** Says whether this was so far that a new epoch begins. */
function move({ time }: Keeping, offset: bigint): boolean {
  // STA_UNSYNC goes, and the kernel writes the time to the hardware clock from here on (adjtimex(2)).
  const fine = { maxError: 0n, estimatedError: 0n }
  if (magnitude(offset) > limits.slew) {
    time.setClock(time.clock('realtime') + offset)
    time.adjustClock({ status: 0, ...fine })
  } else time.adjustClock({ status: pll, nano: true, offset, constant: 4n, ...fine })
  return magnitude(offset) > limits.epoch
}

/** The kernel leads the clock by a phase-locked loop (STA_PLL). */
const pll = 1

const magnitude = (value: bigint) => (value < 0n ? -value : value)
