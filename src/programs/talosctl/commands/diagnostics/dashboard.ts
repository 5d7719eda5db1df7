import { Command } from 'commander'
import type { Cluster } from '../../cluster.ts'
import { UsageError } from '../../failure.ts'
import { duration } from '../../flags.ts'
import type { Io } from '../../io.ts'

const examples = `
Examples:
  talosctl dashboard -n 10.5.0.2,10.5.0.3     two nodes; ← and → go from one to the other
  talosctl dashboard -n 10.5.0.2 -d 1s        figures every second
`

/** talosctl dashboard */
export const dashboard = (io: Io, cluster: Cluster) =>
  new Command()
    .description('Watch nodes on the whole terminal: summary, processors and memory, network, logs, resources, events.')
    .option('-d, --update-interval <duration>', 'how often to look', duration, 3000)
    .addHelpText('after', examples)
    .action((options: { updateInterval: number }) => runDashboard(io, cluster, options.updateInterval))

/** Takes the terminal until the user quits. */
export async function runDashboard(io: Io, cluster: Cluster, interval: number): Promise<void> {
  if (!io.stdout.isTTY || !io.interactive)
    throw new UsageError('the dashboard needs a terminal: "talosctl health", "services", "memory" and "metrics" print the same as text')
  if (interval < 100) throw new UsageError('--update-interval is at least 100ms')
  // The target, and whether it answers, is determined before the terminal is taken over.
  await cluster.peer()
  const [{ takeTerminal }, { showDashboard }] = await Promise.all([
    import('../../dashboard/terminal.ts'),
    import('../../dashboard/dashboard.ts'),
  ])
  const terminal = takeTerminal(process.stdin, process.stdout)
  try {
    await showDashboard({ cluster, terminal, interval, signal: io.signal, now: io.now })
  } finally {
    terminal.close()
  }
}
