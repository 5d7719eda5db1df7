import { Command } from 'commander'
import type { Cluster } from '../../cluster.ts'
import type { Io } from '../../io.ts'

/** talosctl metrics */
export const metrics = (io: Io, cluster: Cluster) =>
  new Command()
    .description('Show what nodes count of themselves and of the system’s own services, in Prometheus’ text format.')
    .option('--name <prefix>', 'only metrics whose names begin like this', '')
    .action((options: MetricsOptions) => runMetrics(io, cluster, options))

interface MetricsOptions {
  name: string
}

/** Prints each node's metrics; of several nodes every sample gets a label "node", so that the whole can be read at once. */
export async function runMetrics(io: Io, cluster: Cluster, { name }: MetricsOptions): Promise<void> {
  const messages = await cluster.ask('ichor.v1.MetricsService/Metrics', {})
  const peer = await cluster.peer()
  if (messages.length === 1) {
    io.stdout.write(chosen(messages[0]?.text ?? '', name))
    return
  }
  const merged = new Map<string, string>()
  for (const message of messages) {
    const node = cluster.nodeOf(message, peer)
    for (const [metric, { head, samples }] of blocks(chosen(message.text, name))) {
      const text = samples.map((sample) => `${labelled(sample, node)}\n`).join('')
      merged.set(metric, (merged.get(metric) ?? head) + text)
    }
  }
  io.stdout.write([...merged.values()].join(''))
}

/** The metrics of a text whose names begin like `prefix`. */
function chosen(text: string, prefix: string): string {
  if (!prefix) return text
  return [...blocks(text)]
    .filter(([name]) => name.startsWith(prefix))
    .map(([, { head, samples }]) => head + samples.map((sample) => `${sample}\n`).join(''))
    .join('')
}

function blocks(text: string): Map<string, { head: string; samples: string[] }> {
  const found = new Map<string, { head: string; samples: string[] }>()
  let block: { head: string; samples: string[] } | undefined
  for (const line of text.split('\n')) {
    const help = /^# HELP (\S+) /.exec(line)
    if (help?.[1]) {
      block = { head: '', samples: [] }
      found.set(help[1], block)
    }
    if (line.startsWith('#') && block) block.head += `${line}\n`
    else if (line) block?.samples.push(line)
  }
  return found
}

function labelled(sample: string, node: string): string {
  const [name = ''] = /^[^{ ]+/.exec(sample) ?? []
  const end = sample[name.length] === '{' ? sample.lastIndexOf('}') : -1
  const labels = sample.slice(name.length + 1, Math.max(0, end))
  const rest = sample.slice(end < 0 ? name.length : end + 1)
  return `${name}{node="${node}"${labels ? `,${labels}` : ''}}${rest}`
}
