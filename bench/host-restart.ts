/**
 * How long a cluster takes to be healthy again after a crash of its host: everything of it but its files is taken away, then
 * `talosctl cluster start` is called, as its systemd unit does. Every phase of it is printed with its time.
 *
 *   sudo bun bench/host-restart.ts [--name bench] [--runs 3] [--talosctl dist/talosctl]
 *
 * The cluster is one that `bench/create.ts --keep` made.
 */
import { loadavg } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { crashHost } from '../tests/support/host-crash.ts'
import { clustersFolder } from './cluster.ts'

const { values } = parseArgs({
  options: {
    name: { type: 'string', default: 'bench' },
    runs: { type: 'string', default: '3' },
    talosctl: { type: 'string', default: join(import.meta.dir, '../dist/talosctl') },
  },
})
const state = clustersFolder()

for (let run = 1; run <= Number(values.runs); run++) {
  const left = await crashHost(join(state, values.name))
  if (left[0]) throw new Error(`crash: ${left[0].reason}`)
  const load = loadavg()[0]?.toFixed(1)
  const begin = performance.now()
  const child = Bun.spawn([values.talosctl, 'cluster', 'start', '--name', values.name, '--state', state], { stderr: 'pipe' })
  const output = await new Response(child.stderr).text()
  if ((await child.exited) !== 0) throw new Error(output)
  const phases = [...output.matchAll(/^(host|nodes|machine API|health): OK \((\S+)\)$/gm)].map(([, name, time]) => `${name} ${time}`)
  console.log(`run ${run}: ${((performance.now() - begin) / 1000).toFixed(1)} s (${phases.join(', ')}; load ${load})`)
}
