/**
 * How long one command takes to create a cluster: every line that `talosctl cluster create` prints, with its time in
 * seconds, and the processor time of the nodes, which shows how much of the time was work.
 *
 *   sudo bun bench/create.ts [--name bench] [--cidr 10.87.0.0/24] [--controlplanes 1] [--workers 1] [--keep] [--talosctl dist/talosctl]
 *
 * The state of the cluster is under the cache folder; the cluster is destroyed afterwards unless `--keep` is given.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { benchFolder } from './place.ts'

const { values } = parseArgs({
  options: {
    name: { type: 'string', default: 'bench' },
    cidr: { type: 'string', default: '10.87.0.0/24' },
    controlplanes: { type: 'string', default: '1' },
    workers: { type: 'string', default: '1' },
    keep: { type: 'boolean', default: false },
    talosctl: { type: 'string', default: join(import.meta.dir, '../dist/talosctl') },
  },
})
const { name, cidr, controlplanes, workers, keep, talosctl } = values
const home = benchFolder()
const state = join(home, 'clusters')
const env = { ...process.env, HOME: home, TALOS_HOME: join(home, '.talos'), KUBECONFIG: join(home, 'kubeconfig') }

/** Prints each line of the command with the time since its start; gives the exit code. */
async function run(args: string[], show: boolean): Promise<number> {
  const begin = performance.now()
  const child = Bun.spawn([talosctl, ...args], { env, stdout: 'pipe', stderr: 'pipe' })
  const stamp = async (stream: ReadableStream<Uint8Array>) => {
    let rest = ''
    for await (const chunk of stream.pipeThrough(new TextDecoderStream() as never) as unknown as AsyncIterable<string>) {
      const lines = (rest + chunk).split('\n')
      rest = lines.pop() ?? ''
      const seconds = ((performance.now() - begin) / 1000).toFixed(2).padStart(7)
      if (show) for (const line of lines) if (line) console.log(`${seconds}  ${line}`)
    }
  }
  await Promise.all([stamp(child.stdout), stamp(child.stderr)])
  return await child.exited
}

/** Seconds of processor time of everything that belongs to the cluster's nodes, where cgroups report it. */
function processorTime(): string {
  const journal = join(state, name, 'nodes')
  if (!existsSync(journal)) return ''
  const nodes = readdirSync(journal)
  const roots = ['/sys/fs/cgroup/cpuacct', '/sys/fs/cgroup/unified', '/sys/fs/cgroup'].filter(existsSync)
  const found = new Map<string, number>()
  for (const root of roots)
    for (const group of readdirSync(root).filter((each) => each.startsWith('ichor-')))
      for (const node of nodes) {
        const at = join(root, group, node)
        if (found.has(node)) continue
        if (existsSync(join(at, 'cpuacct.usage'))) found.set(node, Number(readFileSync(join(at, 'cpuacct.usage'), 'utf8')) / 1e9)
        else if (existsSync(join(at, 'cpu.stat'))) {
          const used = readFileSync(join(at, 'cpu.stat'), 'utf8').match(/^usage_usec (\d+)/m)?.[1]
          if (used) found.set(node, Number(used) / 1e6)
        }
      }
  return [...found].map(([node, seconds]) => `${node} ${seconds.toFixed(1)} s`).join(', ')
}

const load = () => loadavg()[0]?.toFixed(1)
console.log(`load before: ${load()}`)
const args = ['--name', name, '--state', state]
const code = await run(['cluster', 'create', ...args, '--cidr', cidr, '--controlplanes', controlplanes, '--workers', workers], true)
console.log(`load after: ${load()}; processor time: ${processorTime()}`)
if (!keep) await run(['cluster', 'destroy', ...args], false)
process.exitCode = code
