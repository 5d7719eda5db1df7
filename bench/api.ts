/**
 * How quick the machine API of a cluster is, measured with the field's own Go client (client/main.go) over one TLS 1.3
 * connection to the first control plane.
 *
 *   sudo bun bench/api.ts [--name bench] [--state FOLDER] [--scale 1]
 *
 * Prints a table. `--scale 0.2` makes a fifth of the calls. A file of 1 GB that cannot be compressed is written to the nodes'
 * disks, read and copied; what init and apid then hold at most is sampled meanwhile.
 */
import { createWriteStream, rmSync } from 'node:fs'
import { loadavg } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { buildClient } from './build-client.ts'
import { type BenchNode, memoryOf, openCluster } from './cluster.ts'

const { values } = parseArgs({
  options: {
    name: { type: 'string', default: 'bench' },
    state: { type: 'string' },
    scale: { type: 'string', default: '1' },
  },
})
const cluster = openCluster(values.name, values.state)
const [first, second] = cluster.nodes
if (!first) throw new Error(`cluster "${values.name}" has no nodes`)
const scale = Number(values.scale)
const file = 'ichor-bench-1g'
const client = await buildClient()

/** The last line of a run, as `name=value`; rounds of a watch are joined. */
async function measure(args: string[]): Promise<Record<string, string>[]> {
  const child = Bun.spawn([client, '-talosconfig', cluster.talosconfig, '-endpoint', `${first?.ip}:50000`, ...args], { stderr: 'pipe' })
  const [out, errors] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  if ((await child.exited) !== 0) throw new Error(errors.trim())
  return out
    .trim()
    .split('\n')
    .map((line) => Object.fromEntries(line.split(' ').map((pair) => pair.split('=', 2))))
}

const count = (calls: number) => ['-n', String(Math.max(20, Math.round(calls * scale)))]
const node = ['-node', first.ip]
const row = (what: string, ...cells: (string | undefined)[]) => console.log(`| ${what} | ${cells.map((cell) => cell ?? '').join(' | ')} |`)

async function calls(what: string, args: string[]): Promise<void> {
  const last = (await measure(args)).at(-1)
  row(what, last?.p50, last?.p99, `${last?.rps}/s`)
}

/** The most a node's init and apid hold while something goes on, and what they held before: megabytes of their own memory. */
async function held<T>(nodes: readonly BenchNode[], work: Promise<T>): Promise<{ result: T; growth: string }> {
  const watched = nodes.flatMap((each) =>
    ['init', 'apid'].flatMap((program) => {
      const pid = each.processes().get(program)
      return pid === undefined
        ? []
        : [{ name: `${program}${nodes.length > 1 ? ` of ${each.role}` : ''}`, pid, before: memoryOf(pid).anonymous, peak: 0 }]
    }),
  )
  const sample = setInterval(() => {
    for (const each of watched) each.peak = Math.max(each.peak, memoryOf(each.pid).anonymous)
  }, 100)
  try {
    const result = await work
    return { result, growth: watched.map(({ name, before, peak }) => `${name} ${megabytes(before)} → ${megabytes(peak)}`).join(', ') }
  } finally {
    clearInterval(sample)
  }
}

const megabytes = (bytes: number) => `${Math.round(bytes / 1e6)} MB`

async function stream(what: string, nodes: readonly BenchNode[], mode: 'stream' | 'copy', node: string): Promise<void> {
  const runs = measure(['-node', node, '-mode', mode, '-path', `/var/${file}`, '-n', '3'])
  const { result, growth } = await held(nodes, runs)
  // A copy of what cannot be compressed is as long as the file.
  const rates = result.map(({ rate }) => Number.parseFloat(rate ?? '0'))
  row(what, '', growth, `${Math.max(...rates).toFixed(0)} MB/s`)
}

/** Rounds of an event for many: how long until the first has it, and the last. */
async function rounds(what: string, args: string[]): Promise<void> {
  const [begun, ...events] = await measure([...node, ...args, '-rounds', '6'])
  row(`${what}: all begun`, '', begun?.max)
  const last = events.map(({ max }) => Number.parseFloat(max ?? '0')).sort((a, b) => a - b)
  const spread = events.map(({ max, mean }) => Number.parseFloat(max ?? '0') - Number.parseFloat(mean ?? '0')).sort((a, b) => a - b)
  row(`${what}: an event at the last of them`, `${last[last.length >> 1]?.toFixed(1)} ms`, `${last.at(-1)?.toFixed(1)} ms`)
  row(`${what}: from the middle one to the last`, `${spread[spread.length >> 1]?.toFixed(1)} ms`, `${spread.at(-1)?.toFixed(1)} ms`)
}

/** A file of a gigabyte of noise. */
async function noise(path: string): Promise<void> {
  const out = createWriteStream(path)
  for (let n = 0; n < 1e9 / 65_536; n++)
    if (!out.write(crypto.getRandomValues(Buffer.allocUnsafe(65_536)))) await new Promise((resolve) => out.once('drain', resolve))
  await new Promise<void>((resolve) => out.end(resolve))
}

console.log(`load ${loadavg()[0]?.toFixed(1)}\n\n| what | p50 | p99, last, or memory | rate |\n|---|---|---|---|`)
await calls('`version`, node named, one after another', [...node, ...count(5000)])
await calls('the same without node', count(5000))
for (const flying of [64, 512, 2000]) await calls(`${flying} in flight`, [...node, ...count(40_000), '-mode', 'par', '-c', String(flying)])
await calls('new connection and first call', [...node, ...count(300), '-mode', 'connect'])
if (second) {
  await calls('through this node to a second, one after another', ['-node', second.ip, ...count(5000)])
  await calls('the same, 64 in flight', ['-node', second.ip, ...count(30_000), '-mode', 'par', '-c', '64'])
  await calls('two nodes in one call', ['-node', `${first.ip},${second.ip}`, ...count(3000)])
  const twenty = Array.from({ length: 10 }, () => `${first.ip},${second.ip}`).join(',')
  await calls('twenty in one call: two nodes, ten times each', ['-node', twenty, ...count(1000)])
}
await rounds('100 watchers of addresses, one connection', [
  ...['-mode', 'watch', '-n', '100', '-type', 'AddressStatuses.net.talos.dev'],
  ...['-netns', String(first.processes().get('init'))],
])
await rounds('`logs -f` of 100 clients', ['-mode', 'logs', '-n', '100'])
for (const each of second ? [first, second] : [first]) {
  const path = join(each.disk, 'var', file)
  const [where, on] = each === first ? ['node named', [first]] : ['of the second node', [first, each]]
  await noise(path)
  try {
    await stream(`Read of 1 GB, ${where}`, on as BenchNode[], 'stream', each.ip)
    await stream(`Copy of 1 GB, ${where}`, on as BenchNode[], 'copy', each.ip)
  } finally {
    rmSync(path, { force: true })
  }
}
console.log(`\nload ${loadavg()[0]?.toFixed(1)}`)
