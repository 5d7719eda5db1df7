/**
 * What the nodes of an idle cluster use: memory of init, apid and trustd, and their processor time.
 * With `--calls N` one call a second is then made to the first control plane for N seconds, and its memory is printed meanwhile.
 *
 *   sudo bun bench/idle.ts [--name bench] [--state FOLDER] [--seconds 60] [--calls 0]
 */

import { loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { present } from '../rootfs/build/present.ts'
import { connect } from '../src/rpc/client/channel.ts'
import { type BenchNode, memoryOf, openCluster, processorTimeOf } from './cluster.ts'

const { values } = parseArgs({
  options: {
    name: { type: 'string', default: 'bench' },
    state: { type: 'string' },
    seconds: { type: 'string', default: '60' },
    calls: { type: 'string', default: '0' },
  },
})
const cluster = openCluster(values.name, values.state)
const seconds = Number(values.seconds)
const mebibytes = (bytes: number) => (bytes / 2 ** 20).toFixed(1)

const before = cluster.nodes.map((node) => ({ node, processes: node.processes() }))
const times = new Map(before.flatMap(({ processes }) => [...processes.values()].map((pid) => [pid, processorTimeOf(pid)])))
const begin = performance.now()
await Bun.sleep(seconds * 1000)
const wall = (performance.now() - begin) / 1000

console.log('| node | program | anonymous MB | Pss MB | % of a core |\n|---|---|---|---|---|')
for (const { node, processes } of before) {
  let sum = 0
  for (const [program, pid] of processes) {
    const { anonymous, pss } = memoryOf(pid)
    const share = ((processorTimeOf(pid) - (times.get(pid) ?? 0)) / wall) * 100
    sum += anonymous
    console.log(`| ${node.name} | ${program} | ${mebibytes(anonymous)} | ${mebibytes(pss)} | ${share.toFixed(2)} |`)
  }
  console.log(`| ${node.name} | together | ${mebibytes(sum)} | | |`)
}
console.log(`over ${wall.toFixed(0)} s, load ${loadavg()[0]?.toFixed(1)}`)

if (Number(values.calls) > 0) await grow(present(cluster.nodes[0], 'first node'), Number(values.calls))

/** One call a second; a line of memory ten times on the way. */
async function grow(node: BenchNode, calls: number): Promise<void> {
  const channel = connect({ address: `${node.ip}:50000`, tls: cluster.credentials })
  const line = (count: number) => {
    const parts = [...node.processes()].map(([program, pid]) => `${program} ${mebibytes(memoryOf(pid).anonymous)}`)
    console.log(`after ${count} calls: ${parts.join(', ')} MB anonymous`)
  }
  console.log(`one call a second for ${calls} s:`)
  line(0)
  const every = Math.max(1, Math.floor(calls / 10))
  const start = performance.now()
  for (let count = 1; count <= calls; count++) {
    await channel.unary('machine.MachineService/Version', {}, { deadline: 10_000, metadata: { node: node.ip } })
    if (count % every === 0) line(count)
    await Bun.sleep(Math.max(0, start + count * 1000 - performance.now()))
  }
  channel.close()
}
