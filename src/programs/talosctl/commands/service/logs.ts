import { Command, Option } from 'commander'
import type { Cluster } from '../../cluster.ts'
import { LiveArgument } from '../../completion/live-argument.ts'
import { logs as suggestions } from '../../completion/suggestions.ts'
import { type ContainerOptions, containerScope } from '../../container-scope.ts'
import { describe } from '../../failure.ts'
import { integer } from '../../flags.ts'
import type { Io } from '../../io.ts'
import { NodePaint } from '../../output/node-paint.ts'

interface LogsOptions extends ContainerOptions {
  follow?: boolean
  previous?: boolean
  tail: number
}

/** talosctl logs */
export const logs = (io: Io, cluster: Cluster) =>
  new Command()
    .description('Show the log of a service, or of a container with --kubernetes.')
    .addArgument(new LiveArgument('<id>', 'the service or container', suggestions))
    .option('-f, --follow', 'go on with new lines until interrupted')
    .option('-k, --kubernetes', 'a container that Kubernetes runs')
    .option('--tail <lines>', 'only the last lines; -1 is all', integer(-1), -1)
    .addOption(new Option('-p, --previous', 'the log of the start of the node before this one').conflicts(['follow', 'kubernetes']))
    .addOption(new Option('--use-cri').hideHelp())
    .action((id: string, options: LogsOptions) => runLogs(io, cluster, id, options))

/** Prints whole lines with their node in front, as they come. */
export async function runLogs(io: Io, cluster: Cluster, id: string, options: LogsOptions): Promise<void> {
  const names = new NodePaint(io.stdout, (await cluster.nodes()).length > 1)
  const peer = await cluster.peer()
  const pieces = new Map<string, { decoder: TextDecoder; rest: string }>()
  const failed = (_: string, error: Error) => io.stderr.write(`ERROR: ${describe(error)}\n`)
  const print = (node: string, lines: string[]) => io.stdout.write(lines.map((line) => `${names.paint(node)}: ${line}\n`).join(''))
  try {
    for await (const data of opened(cluster, id, options, { failed })) {
      const node = cluster.nodeOf(data, peer)
      const piece = pieces.get(node) ?? { decoder: new TextDecoder(), rest: '' }
      pieces.set(node, piece)
      const lines = (piece.rest + piece.decoder.decode(data.bytes, { stream: true })).split('\n')
      piece.rest = lines.pop() ?? ''
      print(node, lines)
      await io.stdout.drained()
    }
  } catch (error) {
    if (!io.signal.aborted) throw error
  } finally {
    for (const [node, { rest }] of pieces) if (rest) print(node, [rest])
  }
}

function opened(cluster: Cluster, id: string, options: LogsOptions, handlers: { failed(node: string, error: Error): void }) {
  const tailLines = options.tail
  if (options.previous) return cluster.stream('ichor.v1.LogService/Previous', { id, tailLines }, handlers)
  const request = { ...containerScope(options), id, follow: options.follow === true, tailLines }
  return cluster.stream('machine.MachineService/Logs', request, handlers)
}
