/**
 * WireGuard in user space beside the protocol's implementation in Go: `bun bench/wireguard.ts [--runs N] [--seconds N]` as root,
 * with Go, wg(8) and iperf3(1). Each implementation has a tunnel of its own between two namespaces of its own, with one of its
 * programs at each end; they are measured in turns. Processor time is that of the two programs of the tunnel, without iperf3.
 */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { table } from '../src/programs/talosctl/output/table.ts'
import { newPrivateKey, publicKeyOf } from '../src/wire/wireguard/keys.ts'
import { succeeded } from '../tests/cluster/cluster.ts'
import { builtTool, run } from '../tests/etcd/etcd-tools.ts'
import { eventually, Namespaces, spawnIn } from '../tests/network/lab/namespaces.ts'
import { median } from './median.ts'

const { values } = parseArgs({ options: { runs: { type: 'string', default: '5' }, seconds: { type: 'string', default: '5' } } })
const runs = Number(values.runs)
const seconds = Number(values.seconds)
if (!(runs >= 1 && seconds >= 1)) {
  console.error('usage: bun bench/wireguard.ts [--runs N] [--seconds N], both at least 1')
  process.exit(64)
}
const folder = mkdtempSync('/run/ichor-bench-wireguard-')
const spaces = new Namespaces()
const programs: Bun.Subprocess[] = []
const port = 51820

interface Side {
  readonly netns: string
  readonly link: string
  readonly keyFile: string
  readonly publicKey: string
  readonly outer: string
  readonly inner: string
  readonly pid: number
}

interface Tunnel {
  readonly name: string
  readonly sides: readonly [Side, Side]
}

/** What one run measured: bits a second, seconds of processor time for 1 GB in each direction's program, milliseconds. */
interface Figures {
  readonly rate: number
  readonly sender: number
  readonly receiver: number
  readonly ping: number
}

function side(link: string, host: number, argv: readonly string[]): Side {
  const netns = spaces.make(link)
  const key = newPrivateKey()
  const keyFile = join(folder, link)
  writeFileSync(keyFile, key, { mode: 0o600 })
  const child = spawnIn(netns, [...argv, link]) // nsenter(1) becomes the program and keeps its process id
  programs.push(child)
  return { netns, link, keyFile, publicKey: publicKeyOf(key), outer: `10.9.0.${host}`, inner: `10.10.0.${host}`, pid: child.pid }
}

/** Two programs of one implementation with a tunnel between them. */
async function tunnel(name: string, argv: readonly string[]): Promise<Tunnel> {
  const sides = [side(`${name}-a`, 1, argv), side(`${name}-b`, 2, argv)] as const
  const [near, far] = [spaces.network(sides[0].netns), spaces.network(sides[1].netns)]
  near.addVeth({ name: 'eth0', up: true, peer: { name: 'eth0' }, peerNetns: sides[1].netns })
  far.setLink('eth0', { up: true })
  for (const [index, one] of sides.entries()) {
    const other = sides[1 - index] ?? one
    const network = index === 0 ? near : far
    const inNamespace = ['nsenter', `--net=${one.netns}`]
    network.addAddress({ link: network.link('eth0')?.index ?? 0, address: `${one.outer}/24` })
    await eventually(async () => (await run([...inNamespace, 'wg', 'show', one.link])).code === 0, `wg show ${one.link}`)
    const peer = ['peer', other.publicKey, 'endpoint', `${other.outer}:${port}`, 'allowed-ips', `${other.inner}/32`]
    succeeded(await run([...inNamespace, 'wg', 'set', one.link, 'listen-port', `${port}`, 'private-key', one.keyFile, ...peer]))
    network.addAddress({ link: network.link(one.link)?.index ?? 0, address: `${one.inner}/24` })
    network.setLink(one.link, { up: true, mtu: 1420 })
  }
  return { name, sides }
}

/** Seconds of processor time of a process, all threads (proc_pid_stat(5), in hundredths). */
function processorTime(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, 'latin1')
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / 100
}

/** Sends for some seconds from the first side to the second; then measures the way there and back on the idle tunnel. */
async function measure({ sides: [from, to] }: Tunnel): Promise<Figures> {
  const server = spawnIn(to.netns, ['iperf3', '--server', '--one-off', '--bind', to.inner])
  programs.push(server)
  const inNamespace = ['nsenter', `--net=${from.netns}`]
  const listens = async () => (await run(['nsenter', `--net=${to.netns}`, 'ss', '-Hltn', 'sport = :5201'])).stdout.includes('5201')
  await eventually(listens, 'iperf3 listens')
  const before = [from, to].map(({ pid }) => processorTime(pid))
  const { stdout } = succeeded(await run([...inNamespace, 'iperf3', '--client', to.inner, '--time', `${seconds}`, '--json']))
  const after = [from, to].map(({ pid }) => processorTime(pid))
  await server.exited
  const { bytes, bits_per_second: rate } = JSON.parse(stdout).end.sum_received
  const perGb = (index: number) => ((after[index] ?? 0) - (before[index] ?? 0)) / (bytes / 1e9)
  const ping = succeeded(await run([...inNamespace, 'ping', '-q', '-c', '200', '-i', '0.005', to.inner])).stdout
  return { rate, sender: perGb(0), receiver: perGb(1), ping: Number(ping.match(/= [\d.]+\/([\d.]+)/)?.[1]) }
}

try {
  const judge = await builtTool(folder, 'judge', 'tests/interop/wireguard', '.')
  const main = join(import.meta.dir, '../src/main.ts')
  const tunnels = [await tunnel('ours', [process.execPath, main, 'wireguard']), await tunnel('go', [judge])]
  const all = tunnels.map((): Figures[] => [])
  for (let round = 0; round <= runs; round++)
    for (const [index, one] of tunnels.entries()) {
      const figures = await measure(one)
      console.error(`${one.name}: ${JSON.stringify(figures)}`)
      if (round > 0) all[index]?.push(figures) // the first round warms both up
    }
  const row = (what: string, digits: number, figure: (figures: Figures) => number, better: 1 | -1) => {
    const [ours = 0, theirs = 0] = all.map((list) => median(list.map(figure)))
    return [what, ours.toFixed(digits), theirs.toFixed(digits), ((ours / theirs) ** better).toFixed(2)]
  }
  console.log(
    table([
      ['WHAT', 'OURS', 'GO', 'OURS AGAINST GO, MORE IS BETTER'],
      row('TCP, one connection, Mbit/s', 0, ({ rate }) => rate / 1e6, 1),
      row('processor time of the sender, s for 1 GB', 2, ({ sender }) => sender, -1),
      row('processor time of the receiver, s for 1 GB', 2, ({ receiver }) => receiver, -1),
      row('Mbit/s of one core, both ends', 0, ({ sender, receiver }) => 8e3 / (sender + receiver), 1),
      row('ping, ms', 3, ({ ping }) => ping, -1),
    ]),
  )
} finally {
  for (const one of programs) {
    one.kill()
    await one.exited
  }
  spaces.close()
  rmSync(folder, { recursive: true, force: true })
}
