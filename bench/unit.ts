/**
 * Time of the unit suite on a quiet machine, the better of two runs.
 *
 *   bun bench/unit.ts
 */
import { join } from 'node:path'
import { present } from '../rootfs/build/present.ts'

interface Cost {
  /** Seconds from start to end. */
  wall: number
  /** Seconds of processor time of all processes. */
  user: number
  system: number
}

async function measure(): Promise<Cost> {
  const started = performance.now()
  const child = Bun.spawn([process.execPath, join(import.meta.dir, '../tests/unit.ts')], { stdio: ['ignore', 'ignore', 'ignore'] })
  if ((await child.exited) !== 0) throw new Error('the unit suite fails: see `bun run unit`')
  const { cpuTime } = present(child.resourceUsage(), 'the resource usage of the suite')
  return {
    wall: (performance.now() - started) / 1e3,
    user: Number(cpuTime.user) / 1e6,
    system: Number(cpuTime.system) / 1e6,
  }
}

const [first, second] = [await measure(), await measure()]
const { wall, user, system } = first.wall < second.wall ? first : second
console.log('| unit suite | processor, user | system |')
console.log('|---|---|---|')
console.log(`| ${[wall, user, system].map((seconds) => `${seconds.toFixed(1)} s`).join(' | ')} |`)
