import { Command } from 'commander'
import type { ichor } from '../../../../rpc/messages.ts'
import type { Cluster } from '../../cluster.ts'
import { UsageError } from '../../failure.ts'
import type { Io } from '../../io.ts'
import { type ApplyFlags, applyOptions } from '../../machine-config/apply-mode.ts'
import { restoreOn } from '../../machine-config/applying.ts'
import { differenceOf } from '../../machine-config/difference.ts'
import { paintDiff } from '../../output/diff-paint.ts'
import { type OutputFlags, outputOption, structured, withNodes } from '../../output/output.ts'
import { messageSchema } from '../../output/schema.ts'
import { table } from '../../output/table.ts'
import { rfc3339 } from '../../output/units.ts'

/** talosctl config-history */
export const configHistory = (io: Io, cluster: Cluster) => {
  const group = new Command()
    .description('List, show, compare and restore the configurations that nodes were given.')
    .addOption(outputOption(messageSchema('ichor.v1.ConfigService/History')))
    .action((flags: OutputFlags) => runList(io, cluster, flags))
  group
    .command('list')
    .alias('ls')
    .summary('List what is remembered, newest first')
    .action(() => runList(io, cluster, group.opts<OutputFlags>()))
  group
    .command('show <id>')
    .summary('Write one of them; 0 is the one in force')
    .action((id: string) => runShow(io, cluster, id))
  group
    .command('diff <id> [other]')
    .summary('Show how one differs from another, or from the one in force')
    .action((id: string, other = '0') => runDiff(io, cluster, id, other))
  const restore = group
    .command('restore <id>')
    .summary('Apply one of them again')
    .action((id: string, flags: ApplyFlags) => runRestore(io, cluster, id, flags))
  for (const option of applyOptions()) restore.addOption(option)
  return group
}

/** Lists what every node remembers. */
export async function runList(io: Io, cluster: Cluster, { output }: OutputFlags): Promise<void> {
  const messages = await cluster.ask('ichor.v1.ConfigService/History', {})
  const peer = await cluster.peer()
  if (structured(io, output, withNodes(cluster, peer, messages))) return
  const rows = messages.flatMap((message) =>
    message.entries.map((entry) => [
      cluster.nodeOf(message, peer),
      entry.id,
      rfc3339(entry.time && { ...entry.time, nanos: 0 }),
      entry.restored ? `${entry.mode} (restored ${entry.restored})` : entry.mode,
      caller(entry),
      entry.sha256.slice(0, 12),
      state(entry),
    ]),
  )
  io.stdout.write(table([['NODE', 'ID', 'TIME', 'MODE', 'BY', 'SHA256', 'STATE'], ...rows]))
}

function caller({ actor, roles, peer }: ichor.v1.HistoryEntry): string {
  const who = actor || roles.join(',')
  return peer && peer !== 'unix' ? `${who || 'anyone'}@${peer}` : who
}

function state({ active, kept, outcome, reason, mode }: ichor.v1.HistoryEntry): string {
  const words = [
    active ? 'in force' : kept ? 'at the next start' : '',
    outcome === 'pending' ? (mode === 'try' ? 'on trial' : 'to be confirmed') : outcome,
  ]
  return `${words.filter(Boolean).join(', ')}${reason ? `: ${reason}` : ''}`
}

/** Writes one configuration as it was given. */
export async function runShow(io: Io, cluster: Cluster, id: string): Promise<void> {
  await cluster.single('config-history show')
  io.stdout.write(await textOf(cluster, number(id)))
}

/** Shows what is different in meaning between two configurations. */
export async function runDiff(io: Io, cluster: Cluster, id: string, other: string): Promise<void> {
  await cluster.single('config-history diff')
  const [from, to] = [number(id), number(other)]
  io.stdout.write(paintDiff(io.stdout, await differenceOf(await textOf(cluster, from), await textOf(cluster, to))))
}

/** Applies one of them again on every named node. */
export async function runRestore(io: Io, cluster: Cluster, id: string, flags: ApplyFlags): Promise<void> {
  const entry = number(id)
  if (entry === 0) throw new UsageError('configuration 0 is the one in force: name the one to go back to')
  await cluster.named('config-history restore')
  await restoreOn(io, cluster, entry, flags)
}

async function textOf(cluster: Cluster, id: number): Promise<string> {
  const [shown] = await cluster.ask('ichor.v1.ConfigService/Show', { id })
  return new TextDecoder().decode(shown?.data)
}

function number(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new UsageError(`"${text}" is not the number of a configuration: see "talosctl config-history"`)
  return Number(text)
}
