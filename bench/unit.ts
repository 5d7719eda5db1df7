/**
 * Time of the unit suite, and what each setting of its runtime (tests/unit.ts) saves. Run it on a quiet machine: two runs of each.
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

/** The runtime's own values, which take a setting of the suite back. */
const variants: Readonly<Record<string, Record<string, string>>> = {
  'as it is': {},
  'with the last tier of the compiler': { BUN_JSC_useFTLJIT: '1' },
  'with memory given back after 100 ms': { MIMALLOC_PURGE_DELAY: '100' },
  'with both': { BUN_JSC_useFTLJIT: '1', MIMALLOC_PURGE_DELAY: '100' },
}

async function measure(settings: Record<string, string>): Promise<Cost> {
  const started = performance.now()
  const child = Bun.spawn([process.execPath, join(import.meta.dir, '../tests/unit.ts')], {
    env: { ...process.env, ...settings },
    stdio: ['ignore', 'ignore', 'ignore'],
  })
  if ((await child.exited) !== 0) throw new Error('the unit suite fails: see `bun run unit`')
  const { cpuTime } = present(child.resourceUsage(), 'the resource usage of the suite')
  return {
    wall: (performance.now() - started) / 1e3,
    user: Number(cpuTime.user) / 1e6,
    system: Number(cpuTime.system) / 1e6,
  }
}

console.log('| unit suite | s | processor, user | system |')
console.log('|---|---|---|---|')
for (const [name, settings] of Object.entries(variants)) {
  const [first, second] = [await measure(settings), await measure(settings)]
  const best = first.wall < second.wall ? first : second
  console.log(`| ${name} | ${[best.wall, best.user, best.system].map((seconds) => seconds.toFixed(1)).join(' | ')} |`)
}
