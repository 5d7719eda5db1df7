/**
 * How long talosctl takes from start to finish, and the most memory it holds:
 * `bun bench/cli.ts [--talosconfig FILE] [--node ADDRESS] [--runs N] [--binary FILE]`. Without a node only what needs none is measured.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { cpus, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { table } from '../src/programs/talosctl/output/table.ts'

const { values } = parseArgs({
  options: {
    talosconfig: { type: 'string' },
    node: { type: 'string' },
    runs: { type: 'string', default: '20' },
    binary: { type: 'string', default: join(import.meta.dir, '../dist/talosctl') },
  },
})

const scratch = mkdtempSync(join(tmpdir(), 'ichor-cli-'))
const alone = [
  ['version', '--client'],
  ['completion', 'bash'],
  ['image', 'default'],
  ['gen', 'config', 'bench', 'https://10.0.0.1:6443', '--force', '--output', scratch],
]
const withNode = [['version'], ['services'], ['get', 'members'], ['get', 'rd'], ['processes'], ['ls', '-r', '/etc']]
const identity = values.talosconfig ? ['--talosconfig', values.talosconfig] : []
const target = values.node ? [...identity, '--nodes', values.node] : []
const commands = [
  ...alone.map((args) => ({ args, flags: [] as string[] })),
  ...(values.node ? [['config', 'info']] : []).map((args) => ({ args, flags: identity })),
  ...(values.node ? withNode : []).map((args) => ({ args, flags: target })),
  // Live completion: the words of the line so far, of which the last is being written.
  ...(values.node
    ? [
        ['services', ''],
        ['get', 'addr'],
      ]
    : []
  ).map(([command = '', word = '']) => ({
    args: ['__complete', command],
    flags: [...target, word],
  })),
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
rmSync(scratch, { recursive: true, force: true })
