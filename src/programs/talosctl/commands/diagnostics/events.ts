import { Command } from 'commander'
import type { machine } from '../../../../rpc/messages.ts'
import type { Cluster } from '../../cluster.ts'
import { describeEvent, eventsOf } from '../../event.ts'
import { duration, integer } from '../../flags.ts'
import type { Io } from '../../io.ts'
import { type OutputFlags, outputOption } from '../../output/output.ts'
import { LiveTable } from '../../output/table.ts'

interface EventsOptions extends OutputFlags {
  tail: number
  since?: string
  duration: number
  actorId?: string
}

/** talosctl events */
export const events = (io: Io, cluster: Cluster) =>
  new Command()
    .description('Show what happens on each node until interrupted.')
    .argument('[ignored...]')
    .option('--tail <count>', 'begin with this many past events; -1 is all', integer(-1), 0)
    .option('--since <id|duration>', 'begin after this event or with those of the last, for example, "5m"')
    .option('--duration <duration>', 'begin with the events of this last while', duration, 0)
    .option('--actor-id <id>', 'only what this action caused')
    .addOption(
      outputOption(
        { node: 'string', id: 'string', event: 'string', actor: 'string', source: 'string', message: 'string' },
        { about: 'a document for each event (JSON: on one line)' },
      ),
    )
    .action((_: string[], options: EventsOptions) => runEvents(io, cluster, options))

/** Prints one line per event, columns growing with what comes. */
export async function runEvents(io: Io, cluster: Cluster, options: EventsOptions): Promise<void> {
  const lines = new LiveTable()
  const peer = await cluster.peer()
  lines.fit([
    [(await cluster.nodes())[0] ?? peer, 'dc0mggdnre2s73cvfccg', 'talos/runtime/machine.ServiceStateEvent', '', 'startEverything', ''],
  ])
  const inTable = options.output === 'table'
  if (inTable) io.stdout.write(lines.line(['NODE', 'ID', 'EVENT', 'ACTOR', 'SOURCE', 'MESSAGE']))
  try {
    for await (const event of eventsOf(cluster, requestOf(options))) {
      const { source, message } = describeEvent(event.data)
      if (!inTable) {
        const shown = {
          node: cluster.nodeOf(event, peer),
          id: event.id,
          event: event.data?.type_url,
          actor: event.actorId,
          source,
          message,
        }
        io.stdout.write(options.output === 'json' ? `${JSON.stringify(shown)}\n` : `---\n${Bun.YAML.stringify(shown, null, 2)}\n`)
      } else io.stdout.write(lines.line([cluster.nodeOf(event, peer), event.id, event.data?.type_url, event.actorId, source, message]))
    }
  } catch (error) {
    if (!io.signal.aborted) throw error
  }
}

function requestOf({ tail, since, duration: length, actorId }: EventsOptions): machine.EventsRequest {
  let tailSeconds = Math.ceil(length / 1000)
  let tailId = ''
  if (since) {
    try {
      tailSeconds = Math.ceil(duration(since) / 1000)
    } catch {
      tailId = since
    }
  }
  return { tailEvents: tail, tailId, tailSeconds, withActorId: actorId ?? '' }
}
