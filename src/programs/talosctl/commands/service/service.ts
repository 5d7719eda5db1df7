import { Argument, Command } from 'commander'
import type { machine } from '../../../../rpc/messages.ts'
import { toMilliseconds } from '../../../../rpc/proto-time.ts'
import { messageType } from '../../../../rpc/schema.ts'
import type { Cluster } from '../../cluster.ts'
import { LiveArgument } from '../../completion/live-argument.ts'
import { services } from '../../completion/suggestions.ts'
import { UsageError } from '../../failure.ts'
import type { Io } from '../../io.ts'
import { type OutputFlags, outputOption, structured, withNodes } from '../../output/output.ts'
import { messageSchema, objectSchema } from '../../output/schema.ts'
import { table } from '../../output/table.ts'
import { goDuration } from '../../output/units.ts'

const actions = ['status', 'start', 'stop', 'restart'] as const
type Action = (typeof actions)[number]

/** talosctl service */
export const service = (io: Io, cluster: Cluster) =>
  new Command()
    .description('List the services of each node, show one, or start, stop or restart it.')
    .addArgument(new LiveArgument('[id]', 'the service', services))
    .addArgument(new Argument('[action]', 'what to do with it').choices(actions).default('status'))
    .addOption(
      outputOption(messageSchema('machine.MachineService/ServiceList'), {
        others: {
          'of one service': () => ({ node: 'string', ...objectSchema(messageType('machine.ServiceInfo')) }),
          'of start, stop and restart': messageSchema('machine.MachineService/ServiceRestart'),
        },
      }),
    )
    .action((id: string | undefined, action: Action, options: OutputFlags) => {
      if (id === undefined) return runServices(io, cluster, options)
      return action === 'status' ? runServiceStatus(io, cluster, id, options) : runServiceAction(io, cluster, id, action, options)
    })

/** Prints all services of each node. */
export async function runServices(io: Io, cluster: Cluster, options: OutputFlags): Promise<void> {
  const messages = await cluster.ask('machine.MachineService/ServiceList', {})
  const peer = await cluster.peer()
  if (structured(io, options.output, withNodes(cluster, peer, messages))) return
  const rows = messages.flatMap((message) =>
    message.services.map((one) => {
      const last = one.events?.events.at(-1)
      return [cluster.nodeOf(message, peer), one.id, one.state, health(one), ago(io, last), last?.msg]
    }),
  )
  io.stdout.write(table([['NODE', 'SERVICE', 'STATE', 'HEALTH', 'LAST CHANGE', 'LAST EVENT'], ...rows]))
}

/** Prints one service of each node with its events, newest first. */
export async function runServiceStatus(io: Io, cluster: Cluster, id: string, options: OutputFlags): Promise<void> {
  const messages = await cluster.ask('machine.MachineService/ServiceList', {})
  const peer = await cluster.peer()
  const known = new Set<string>()
  const found = messages.flatMap((message) =>
    message.services.filter((one) => one.id === id).map((one) => ({ node: cluster.nodeOf(message, peer), ...one })),
  )
  if (found.length > 0 && structured(io, options.output, found)) return
  let shown = 0
  for (const message of messages) {
    for (const one of message.services) known.add(one.id)
    for (const one of message.services.filter((candidate) => candidate.id === id)) {
      shown++
      io.stdout.write(vertical(io, cluster.nodeOf(message, peer), one))
    }
  }
  if (shown === 0) throw new UsageError(`service "${id}" is not registered on any nodes: there are ${[...known].toSorted().join(', ')}`)
}

/** Starts, stops or restarts a service and prints what each node answered. */
export async function runServiceAction(
  io: Io,
  cluster: Cluster,
  id: string,
  action: Exclude<Action, 'status'>,
  { output }: OutputFlags,
): Promise<void> {
  await cluster.named(`"service ${id} ${action}"`)
  const method = { start: 'ServiceStart', stop: 'ServiceStop', restart: 'ServiceRestart' } as const
  const messages = await cluster.ask(`machine.MachineService/${method[action]}`, { id }, { timeout: 60_000 })
  const peer = await cluster.peer()
  if (structured(io, output, withNodes(cluster, peer, messages))) return
  io.stdout.write(table([['NODE', 'RESPONSE'], ...messages.map((message) => [cluster.nodeOf(message, peer), message.resp])]))
}

function vertical(io: Io, node: string, one: machine.ServiceInfo): string {
  const rows: string[][] = [
    ['NODE', node],
    ['ID', one.id],
    ['STATE', one.state],
    ['HEALTH', health(one)],
  ]
  if (one.health?.lastMessage) rows.push(['LAST HEALTH MESSAGE', one.health.lastMessage])
  const events = (one.events?.events ?? []).toReversed()
  for (const [index, event] of events.entries()) {
    rows.push([index === 0 ? 'EVENTS' : '', `[${event.state}]: ${event.msg} (${ago(io, event)})`])
  }
  return table(rows)
}

function health({ health: state }: machine.ServiceInfo): string {
  if (!state || state.unknown) return '?'
  return state.healthy ? 'OK' : 'Fail'
}

function ago(io: Io, event: machine.ServiceEvent | undefined): string {
  return event?.ts ? `${goDuration(io.now().getTime() - toMilliseconds(event.ts))} ago` : ''
}
