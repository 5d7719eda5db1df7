/**
 * Answers a second of the node's resolver from its cache, and how long each took, measured with dnsperf. The resolver has
 * one core, dnsperf the other; all of it runs in a network namespace of its own.
 *
 *   sudo bun bench/dns.ts [--seconds 10] [--rate 20000]
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { createNetns, inNetns, removeNetns } from '../src/linux/net/netns.ts'
import { openNetwork } from '../src/linux/net/rtnetlink.ts'

const { values } = parseArgs({ options: { seconds: { type: 'string', default: '10' }, rate: { type: 'string', default: '20000' } } })
if (!Bun.which('dnsperf')) throw new Error('bench/dns.ts needs dnsperf: apt-get install dnsperf')

const folder = mkdtempSync(join(tmpdir(), 'ichor-dns-'))
const netns = join(folder, 'net')
const names = join(folder, 'names')
writeFileSync(names, Array.from({ length: 200 }, (_, n) => `host${n}.example.com A\n`).join(''))
createNetns(netns)
const started: ReturnType<typeof start>[] = []

/** Work beside this must not be measured: the two have precedence over it. */
function start(core: number, argv: string[]) {
  const child = inNetns(netns, () =>
    Bun.spawn(['chrt', '--fifo', '10', 'taskset', '-c', String(core), ...argv], { stdin: 'ignore', stdout: 'pipe', stderr: 'inherit' }),
  )
  return child
}

async function server(core: number, script: string): Promise<void> {
  const child = start(core, [process.execPath, join(import.meta.dir, script)])
  started.push(child)
  await child.stdout.getReader().read() // it prints a line when it is ready
}

/** Runs dnsperf; with `each` every answer is a line with its name and how long it took. */
const measure = async (...more: string[]) => {
  const child = start(1, ['dnsperf', '-s', '127.0.0.53', '-d', names, '-l', values.seconds, '-c', '8', ...more])
  return new Response(child.stdout).text()
}

try {
  const network = openNetwork({ netns })
  network.setLink('lo', { up: true })
  network.close()
  await server(1, 'dns/upstream.ts')
  await server(0, 'dns/serve.ts')
  const most = await measure('-q', '60')
  const limited = await measure('-Q', values.rate, '-v')
  const times = [...limited.matchAll(/^> NOERROR \S+ A (\S+)$/gm)].map(([, seconds]) => Number(seconds) * 1000).sort((a, b) => a - b)
  const at = (share: number) => times[Math.floor((times.length - 1) * share)]?.toFixed(2)
  console.log('| | answers a second | lost | p50 | p99 | load |\n|---|---|---|---|---|---|')
  const rate = (text: string) => Number(/Queries per second:\s+(\S+)/.exec(text)?.[1]).toFixed(0)
  const lost = (text: string) => /Queries lost:\s+(\d+)/.exec(text)?.[1]
  const load = loadavg()[0]?.toFixed(1)
  console.log(`| maximum rate, 60 in flight | ${rate(most)} | ${lost(most)} | | | ${load} |`)
  console.log(`| ${values.rate} queries a second | ${rate(limited)} | ${lost(limited)} | ${at(0.5)} ms | ${at(0.99)} ms | ${load} |`)
} finally {
  for (const child of started) child.kill()
  removeNetns(netns)
  rmSync(folder, { recursive: true, force: true })
}
