import { Command } from 'commander'
import type { Cluster } from '../../cluster.ts'
import { LiveArgument } from '../../completion/live-argument.ts'
import { paths as suggestions } from '../../completion/suggestions.ts'
import { NodeErrors } from '../../failure.ts'
import { integer } from '../../flags.ts'
import type { Io } from '../../io.ts'
import { type OutputFlags, outputOption, structured } from '../../output/output.ts'
import { type Row, table } from '../../output/table.ts'
import { humanSize } from '../../output/units.ts'

interface UsageOptions extends OutputFlags {
  all?: boolean
  depth?: number
  humanize?: boolean
  threshold: number
}

/** talosctl usage */
export const usage = (io: Io, cluster: Cluster) =>
  new Command()
    .description('Show how much directories of each node hold.')
    .addArgument(new LiveArgument('[paths...]', 'directories (default: /)', suggestions))
    .option('-a, --all', 'files too, not just directories')
    .option('-d, --depth <levels>', 'how many levels down to show (default: 1); 0 is the directories themselves, -1 is all', integer(-1))
    .option('-H, --humanize', 'sizes for people')
    .option('-t, --threshold <bytes>', 'only what is larger than this, or smaller when negative', integer(-(2 ** 53), 2 ** 53), 0)
    .addOption(outputOption({ node: 'string', name: 'string', size: 'number' }))
    .action((paths: string[], options: UsageOptions) => runUsage(io, cluster, paths, options))

/** Prints sizes, children before their parents. */
export async function runUsage(io: Io, cluster: Cluster, paths: string[], options: UsageOptions): Promise<void> {
  const request = {
    paths: paths.length > 0 ? paths : ['/'],
    all: options.all === true,
    // On the wire the directory itself is a level, and 0 is all of them.
    recursionDepth: (options.depth ?? 1) + 1,
    threshold: options.threshold,
  }
  const rows: Row[] = []
  const found: object[] = []
  const failures: { node: string; error: Error }[] = []
  let several = false
  const peer = await cluster.peer()
  for await (const one of cluster.stream('machine.MachineService/DiskUsage', request)) {
    const node = cluster.nodeOf(one, peer)
    if (one.error) {
      failures.push({ node, error: new Error(one.error) })
      continue
    }
    several ||= Boolean(one.metadata?.hostname)
    found.push({ node, name: one.relativeName, size: one.size })
    rows.push([node, options.humanize ? humanSize(one.size) : one.size, one.relativeName])
  }
  if (!structured(io, options.output, found) && rows.length > 0) {
    const all = [['NODE', 'SIZE', 'NAME'], ...rows]
    io.stdout.write(table(several ? all : all.map(([, ...rest]) => rest)))
  }
  if (failures.length > 0) throw new NodeErrors(failures)
}
