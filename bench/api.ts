/**
 * How quick a machine's API is, measured with the field's own Go client (client/main.go).
 *
 *   bun bench/api.ts --talosconfig F --endpoint 127.0.0.1:50000 --node 10.5.0.2 [--second 10.5.0.3] [--path /var/bench200]
 *
 * Prints a table. The file to stream must be on the node; without --path streaming is left out.
 */
import { mkdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'ichor', 'bench')

async function build(): Promise<string> {
  mkdirSync(cache, { recursive: true })
  const program = join(cache, 'client')
  const go = Bun.spawn(['go', 'build', '-trimpath', '-o', program, '.'], {
    cwd: join(import.meta.dir, 'client'),
    env: { ...process.env, CGO_ENABLED: '0' },
  })
  if ((await go.exited) !== 0) throw new Error('the client could not be built: is Go there?')
  return program
}

async function measure(program: string, args: string[]): Promise<Record<string, string>> {
  const child = Bun.spawn([program, ...args], { stderr: 'pipe' })
  const [out, said] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  if ((await child.exited) !== 0) throw new Error(said.trim())
  const last = out.trim().split('\n').at(-1) ?? ''
  return Object.fromEntries(last.split(' ').map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]))
}

const { values } = parseArgs({
  options: {
    talosconfig: { type: 'string' },
    endpoint: { type: 'string' },
    node: { type: 'string' },
    second: { type: 'string' },
    path: { type: 'string' },
  },
})
const { talosconfig, endpoint, node, second, path } = values
if (!talosconfig || !endpoint || !node) {
  console.error('usage: bun bench/api.ts --talosconfig F --endpoint HOST:PORT --node N [--second N] [--path FILE ON THE NODE]')
  process.exit(64)
}

const program = await build()
const base = ['-talosconfig', talosconfig, '-endpoint', endpoint]
const calls = ({ p50, p99, rps }: Record<string, string>) => [p50, p99, rps].map((value = '') => value)
const rows: [string, string[], (result: Record<string, string>) => string[]][] = [
  ['`version`, node named, one after another', ['-node', node, '-n', '5000'], calls],
  ['the same without node', ['-n', '5000'], calls],
  ['64 in flight', ['-node', node, '-n', '50000', '-mode', 'par', '-c', '64'], calls],
  ['256 in flight', ['-node', node, '-n', '50000', '-mode', 'par', '-c', '256'], calls],
  ['2,000 at once', ['-node', node, '-n', '20000', '-mode', 'par', '-c', '2000'], calls],
  ['new connection and first call', ['-node', node, '-n', '300', '-mode', 'connect'], calls],
]
if (second)
  rows.push(
    ['through this node to a second, one after another', ['-node', second, '-n', '5000'], calls],
    ['the same, 64 in flight', ['-node', second, '-n', '50000', '-mode', 'par', '-c', '64'], calls],
    ['two nodes in one call', ['-node', `${node},${second}`, '-n', '3000'], calls],
  )
if (path) rows.push(['Read of a file', ['-node', node, '-mode', 'stream', '-path', path, '-n', '5'], ({ rate = '' }) => ['', '', rate]])

console.log('| what | p50 | p99 | calls per second |\n|---|---|---|---|')
for (const [what, args, show] of rows) console.log(`| ${what} | ${show(await measure(program, [...base, ...args])).join(' | ')} |`)
