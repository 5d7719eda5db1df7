/** The cost of key derivation on this machine. */
import type { Clock } from '../../../cosi/clock.ts'
import { type Cost, deriveKey } from '../../../wire/luks2/derive.ts'

/** Time that opening a volume with one key takes, in milliseconds. */
const target = 2000
/** Most memory, in KiB; at most half of the machine's. */
const mostMemory = 1 << 20
const mostLanes = 4
const leastPasses = 4
/** What is measured, and the least that is ever used, in KiB. */
const measured = 32 << 10

/** What a machine has. */
export interface Capacity {
  /** Bytes of memory; undefined where the kernel does not say. */
  readonly memory: number | undefined
  readonly processors: number
}

/** Measures the machine and returns a cost of about two seconds: as much memory as fits, then passes. */
export async function measureCost(clock: Pick<Clock, 'elapsed'>, { memory, processors }: Capacity): Promise<Cost> {
  const cpus = Math.max(1, Math.min(mostLanes, processors))
  if (memory === undefined) return { time: leastPasses, memory: measured, cpus }
  const started = clock.elapsed()
  await deriveKey('argon2id', new Uint8Array(16), new Uint8Array(32), { time: leastPasses, memory: measured, cpus }, 32)
  return costFor(clock.elapsed() - started, cpus, memory)
}

/** The cost, from the milliseconds that the least cost takes. */
export function costFor(milliseconds: number, cpus: number, memoryBytes: number): Cost {
  const work = (target / Math.max(1, milliseconds)) * leastPasses * measured // KiB-passes
  const limit = Math.max(measured, Math.min(mostMemory, Math.floor(memoryBytes / 2048)))
  const memory = Math.max(measured, Math.min(limit, Math.floor(work / leastPasses)))
  return { time: Math.max(leastPasses, Math.min(16, Math.floor(work / memory))), memory, cpus }
}
