/**
 * How quick the machine API of a cluster is, measured with the field's own Go client (client/main.go) over one TLS 1.3
 * connection to the first control plane.
 *
 *   sudo bun bench/api.ts [--name bench] [--state FOLDER] [--scale 1]
 *
 * Prints a table. `--scale 0.2` makes a fifth of the calls. A file of 200 MB is written to the node's disk and read back.
 */
import { rmSync } from 'node:fs'
import { loadavg } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { buildClient } from './build-client.ts'
import { openCluster } from './cluster.ts'

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
const file = 'ichor-bench-200'
const client = await buildClient()

/** What the last line of a run says, as `name=value`; rounds of a watch are joined. */
async function measure(args: string[]): Promise<Record<string, string>[]> {
  const child = Bun.spawn([client, '-talosconfig', cluster.talosconfig, '-endpoint', `${first?.ip}:50000`, ...args], { stderr: 'pipe' })
  const [out, said] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  if ((await child.exited) !== 0) throw new Error(said.trim())
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

async function stream(what: string, args: string[]): Promise<void> {
  const rates = (await measure([...args, '-mode', 'stream', '-path', `/var/${file}`, '-n', '5'])).map(({ rate }) => rate ?? '')
  row(what, '', '', rates.sort((a, b) => Number.parseFloat(a) - Number.parseFloat(b)).at(-1))
}

/** A hundred watchers of addresses, and an address that comes and goes. */
async function watchers(): Promise<void> {
  const init = first?.processes().get('init')
  const address = '192.0.2.77/32 dev lo'
  const trigger = `nsenter -t ${init} -n sh -c 'ip addr del ${address} 2>/dev/null || ip addr add ${address}'`
  const args = ['-mode', 'watch', '-n', '100', '-type', 'AddressStatuses.net.talos.dev', '-trigger', trigger, '-rounds', '4']
  const [begun, ...rounds] = await measure([...node, ...args])
  row('100 watchers: all started', '', begun?.max)
  row('100 watchers: an event at the last, the command that causes it included', '', rounds.map(({ max }) => max).join(', '))
}

console.log(`load ${loadavg()[0]?.toFixed(1)}\n\n| what | p50 | p99 or last | rate |\n|---|---|---|---|`)
await calls('`version`, node named, one after another', [...node, ...count(5000)])
await calls('the same without node', count(5000))
for (const flying of [64, 256, 2000]) await calls(`${flying} in flight`, [...node, ...count(40_000), '-mode', 'par', '-c', String(flying)])
await calls('new connection and first call', [...node, ...count(300), '-mode', 'connect'])
if (second) {
  await calls('through this node to a second, one after another', ['-node', second.ip, ...count(5000)])
  await calls('the same, 64 in flight', ['-node', second.ip, ...count(30_000), '-mode', 'par', '-c', '64'])
  await calls('two nodes in one call', ['-node', `${first.ip},${second.ip}`, ...count(3000)])
}
await watchers()
for (const each of second ? [first, second] : [first]) {
  const path = join(each.disk, 'var', file)
  await Bun.write(path, new Blob(Array.from({ length: 3052 }, () => crypto.getRandomValues(new Uint8Array(65_536)))))
  try {
    await stream(each === first ? 'Read of 200 MB, node named' : 'Read of 200 MB from the second node', ['-node', each.ip])
  } finally {
    rmSync(path, { force: true })
  }
}
console.log(`\nload ${loadavg()[0]?.toFixed(1)}`)
