/**
 * From a node's start to its first answer over mutual TLS: init is killed, the supervisor starts the node again, and the
 * official client retries until it is answered. The time counts from the start of the new init, as the kernel records it.
 *
 *   sudo bun bench/start.ts [--name bench] [--state FOLDER] [--runs 5] [--node NAME]
 */
import { readFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { buildClient } from './build-client.ts'
import { openCluster } from './cluster.ts'

const { values } = parseArgs({
  options: {
    name: { type: 'string', default: 'bench' },
    state: { type: 'string' },
    runs: { type: 'string', default: '5' },
    node: { type: 'string' },
  },
})
const cluster = openCluster(values.name, values.state)
const node = cluster.nodes.find(({ name, role }) => (values.node ? name === values.node : role === 'worker')) ?? cluster.nodes[0]
if (!node) throw new Error(`cluster "${values.name}" has no nodes`)
const client = await buildClient()

/** When a process began, in milliseconds of the system's clock, to a hundredth of a second. */
function startOf(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const ticks = Number(text.slice(text.lastIndexOf(')') + 2).split(' ')[19])
  const uptime = Number(readFileSync('/proc/uptime', 'utf8').split(' ')[0])
  return Date.now() - (uptime - ticks / 100) * 1000
}

for (let run = 1; run <= Number(values.runs); run++) {
  const old = node.processes().get('init')
  if (old === undefined) throw new Error(`node "${node.name}" does not run`)
  process.kill(old, 'SIGKILL')
  while (node.processes().get('init') === old) await Bun.sleep(10)
  const child = Bun.spawn([client, '-mode', 'wait', '-talosconfig', cluster.talosconfig, '-endpoint', `${node.ip}:50000`], {
    stderr: 'pipe',
  })
  const out = await new Response(child.stdout).text()
  if ((await child.exited) !== 0) throw new Error(await new Response(child.stderr).text())
  const answered = Number(BigInt(out.trim().split(' ')[1] ?? '0') / 1000n) / 1000
  const init = node.processes().get('init')
  if (init === undefined) throw new Error(`node "${node.name}" ended again`)
  console.log(`${node.name} run ${run}: ${((answered - startOf(init)) / 1000).toFixed(2)} s (load ${loadavg()[0]?.toFixed(1)})`)
  await Bun.sleep(5000)
}
