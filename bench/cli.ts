/**
 * How long talosctl takes from start to finish, and the most memory it holds:
 * `bun bench/cli.ts [--talosconfig FILE] [--node ADDRESS] [--runs N] [--binary FILE]`. Without a node only what needs none is measured.
 */
import { cpus, loadavg } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { table } from '../src/programs/talosctl/table.ts'

const { values } = parseArgs({
  options: {
    talosconfig: { type: 'string' },
    node: { type: 'string' },
    runs: { type: 'string', default: '20' },
    binary: { type: 'string', default: join(import.meta.dir, '../dist/talosctl') },
  },
})

const alone = [
  ['version', '--client'],
  ['completion', 'bash'],
  ['image', 'default'],
]
const withNode = [['version'], ['services'], ['get', 'members'], ['get', 'rd'], ['processes'], ['ls', '-r', '/etc']]
const target = values.node ? [...(values.talosconfig ? ['--talosconfig', values.talosconfig] : []), '--nodes', values.node] : undefined
const commands = [
  ...alone.map((args) => ({ args, flags: [] as string[] })),
  ...(target ? [['config', 'info']] : []).map((args) => ({ args, flags: values.talosconfig ? ['--talosconfig', values.talosconfig] : [] })),
  ...(target ? withNode : []).map((args) => ({ args, flags: target! })),
]

async function measure(args: readonly string[]): Promise<{ time: number; memory: number }> {
  const started = performance.now()
  const child = Bun.spawn([values.binary, ...args], { stdout: 'ignore', stderr: 'pipe' })
  const code = await child.exited
  const time = performance.now() - started
  if (code !== 0) throw new Error(`talosctl ${args.join(' ')}: exit code ${code}: ${await new Response(child.stderr).text()}`)
  return { time, memory: child.resourceUsage()?.maxRSS ?? 0 }
}

const rows: unknown[][] = [['COMMAND', 'BEST', 'MEDIAN', 'WORST', 'MEMORY']]
for (const { args, flags } of commands) {
  const runs: { time: number; memory: number }[] = []
  await measure([...args, ...flags])
  for (let run = 0; run < Number(values.runs); run++) runs.push(await measure([...args, ...flags]))
  const times = runs.map(({ time }) => time).toSorted((a, b) => a - b)
  const at = (share: number) => `${(times[Math.floor((times.length - 1) * share)] ?? 0).toFixed(0)} ms`
  rows.push([args.join(' '), at(0), at(0.5), at(1), `${Math.round(Math.max(...runs.map(({ memory }) => memory)) / 1e6)} MB`])
}
const [load = 0] = loadavg()
process.stdout.write(`${cpus().length} processors, load ${load.toFixed(1)}\n\n${table(rows)}`)
