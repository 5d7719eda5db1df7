/**
 * Time of the unit suite, or of a part of it, with the settings of `bun run unit` and with the runtime's own. Both take turns, and the
 * run of each with less processor time counts, so that other work on the machine matters as little as possible.
 *
 *   bun bench/unit.ts [--rounds 2] [PATH…]
 */
import { availableParallelism, loadavg } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { present } from '../rootfs/build/present.ts'
import { ownSettings } from '../tests/support/unit-settings.ts'

interface Cost {
  /** Seconds from start to end. */
  wall: number
  /** Seconds of processor time of all processes. */
  user: number
  system: number
  load: number
}

const { values, positionals } = parseArgs({ options: { rounds: { type: 'string', default: '2' } }, allowPositionals: true })

async function measure(args: readonly string[]): Promise<Cost> {
  const started = performance.now()
  const child = Bun.spawn([process.execPath, join(import.meta.dir, '../tests/unit.ts'), ...args, ...positionals], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const output = await new Response(child.stderr).text()
  if ((await child.exited) !== 0)
    throw new Error(`the unit suite fails:\n${output.match(/^\(fail\).*$/gm)?.join('\n') ?? output.slice(-2000)}`)
  const { cpuTime } = present(child.resourceUsage(), 'the resource usage of the suite')
  return {
    wall: (performance.now() - started) / 1e3,
    user: Number(cpuTime.user) / 1e6,
    system: Number(cpuTime.system) / 1e6,
    load: loadavg()[0] ?? 0,
  }
}

const cases: Record<string, readonly string[]> = { 'bun run unit': [], "with the runtime's own settings": [ownSettings] }
const best = new Map<string, Cost>()
for (let round = 0; round < Number(values.rounds); round++)
  for (const [name, args] of Object.entries(cases)) {
    const cost = await measure(args)
    const before = best.get(name)
    if (!before || cost.user + cost.system < before.user + before.system) best.set(name, cost)
  }
console.log(
  `| ${positionals.length > 0 ? positionals.join(' ') : 'the unit suite'}, ${availableParallelism()} processors | wall | processor, user | system | load |`,
)
console.log('|---|---|---|---|---|')
for (const [name, { wall, user, system, load }] of best)
  console.log(`| ${[name, ...[wall, user, system].map((seconds) => `${seconds.toFixed(1)} s`), load.toFixed(1)].join(' | ')} |`)
