import { Command, Option } from 'commander'
import type { machine } from '../../../../rpc/messages.ts'
import type { Cluster } from '../../cluster.ts'
import type { Io } from '../../io.ts'
import { type OutputFlags, outputOption, structured, withNodes } from '../../output/output.ts'
import { messageSchema } from '../../output/schema.ts'
import { table } from '../../output/table.ts'
import { humanSize } from '../../output/units.ts'

interface ProcessesOptions extends OutputFlags {
  sort: 'rss' | 'cpu'
  watch?: boolean
}

/** talosctl processes */
export const processes = (io: Io, cluster: Cluster) =>
  new Command()
    .description('List the processes of each node.')
    .addOption(new Option('-s, --sort <column>', 'order, largest first').choices(['rss', 'cpu']).default('rss'))
    .option('-w, --watch', 'refresh every second until interrupted')
    .addOption(outputOption(messageSchema('machine.MachineService/Processes')))
    .action((options: ProcessesOptions) => runProcesses(io, cluster, options))

/** Prints the processes once, or again and again. */
export async function runProcesses(io: Io, cluster: Cluster, options: ProcessesOptions): Promise<void> {
  if (!options.watch) {
    const text = await listing(io, cluster, options)
    if (text !== undefined) io.stdout.write(text)
    return
  }
  while (!io.signal.aborted) {
    const text = await listing(io, cluster, options)
    const lines = (text ?? '').split('\n')
    const shown = io.stdout.isTTY ? lines.slice(0, 40).map((line) => line.slice(0, io.stdout.columns)) : lines
    if (text !== undefined) io.stdout.write(`${io.stdout.isTTY ? '\u001b[H\u001b[2J' : ''}${shown.join('\n')}\n`)
    await io.pause(1000)
  }
}

async function listing(io: Io, cluster: Cluster, { sort, output }: ProcessesOptions): Promise<string | undefined> {
  const messages = await cluster.ask('machine.MachineService/Processes', {})
  const peer = await cluster.peer()
  if (structured(io, output, withNodes(cluster, peer, messages))) return undefined
  const all = messages.flatMap((message) => message.processes.map((process) => ({ node: cluster.nodeOf(message, peer), process })))
  const weight = (one: machine.ProcessInfo) => (sort === 'cpu' ? one.cpuTime : one.residentMemory)
  const rows = all
    .toSorted((a, b) => weight(b.process) - weight(a.process))
    .map(({ node, process }) => [
      node,
      process.pid,
      process.state,
      process.threads,
      process.cpuTime.toFixed(2),
      humanSize(process.virtualMemory),
      humanSize(process.residentMemory),
      process.label,
      commandLine(process),
    ])
  return table([['NODE', 'PID', 'STATE', 'THREADS', 'CPU-TIME', 'VIRTMEM', 'RESMEM', 'LABEL', 'COMMAND'], ...rows], 2)
}

/** The arguments with the executable's full path in front; what cannot be printed becomes a blank. */
function commandLine({ executable, args, command }: machine.ProcessInfo): string {
  const [first = '', ...rest] = args.split(/\s+/).filter(Boolean)
  const base = executable.split('/').at(-1)
  const text = executable === '' ? command : first === base ? [executable, ...rest].join(' ') : args
  return text.replace(/[^\x20-\x7e\u00a0-\uffff]/g, ' ').trim()
}
