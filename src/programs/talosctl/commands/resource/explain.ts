import { Command } from 'commander'
import { ichor as enums } from '../../../../rpc/enums.ts'
import type { ichor } from '../../../../rpc/messages.ts'
import { toMilliseconds } from '../../../../rpc/proto-time.ts'
import type { Cluster } from '../../cluster.ts'
import { UsageError } from '../../failure.ts'
import { type Io, paint } from '../../io.ts'
import { relativeTime } from '../../output/relative-time.ts'

const { Kind } = enums.v1.Cause
const [red, green, yellow] = [1, 2, 3]

interface ExplainFlags {
  namespace?: string
  insecure?: boolean
}

/** talosctl explain */
export const explain = (io: Io, cluster: Cluster) =>
  new Command()
    .description(
      'Explain why a resource is missing or unhealthy: deepest cause first, and what follows from it. Without a resource, why the machine is not ready.',
    )
    .argument('[resource]', 'TYPE/ID, or a type and an id')
    .argument('[id]', 'the id, when it is given apart')
    .option('--namespace <namespace>', "look in this namespace instead of the type's own")
    .option('-i, --insecure', 'the node has no certificates yet: one in maintenance mode, or one that cannot join')
    .action(async (resource: string | undefined, id: string | undefined, flags: ExplainFlags) => {
      if (!flags.insecure) return runExplain(io, cluster, resource, id, flags)
      const node = await cluster.insecure()
      await runExplain(io, node, resource, id, flags).finally(() => node.close())
    })

/** Queries every named node and prints its explanation. */
export async function runExplain(
  io: Io,
  cluster: Cluster,
  resource: string | undefined,
  id: string | undefined,
  { namespace = '' }: ExplainFlags,
): Promise<void> {
  const messages = await cluster.ask('ichor.v1.ExplainService/Explain', { namespace, ...wanted(resource, id) })
  const peer = await cluster.peer()
  for (const message of messages) {
    if (messages.length > 1) io.stdout.write(`${cluster.nodeOf(message, peer)}:\n`)
    io.stdout.write(`${shown(io, message)}\n`)
  }
}

function wanted(resource: string | undefined, id: string | undefined): { type: string; id: string } {
  if (resource === undefined) return { type: '', id: '' }
  const slash = resource.indexOf('/')
  if (id !== undefined) {
    if (slash >= 0) throw new UsageError(`"${resource}" names an id already: leave "${id}" out`)
    return { type: resource, id }
  }
  return slash < 0 ? { type: resource, id: '' } : { type: resource.slice(0, slash), id: resource.slice(slash + 1) }
}

function shown(io: Io, { subject, well, summary, causes }: ichor.v1.Explanation): string {
  if (well) return paint(io.stdout, green, summary)
  const width = String(causes.length).length
  return [
    `${subject} is not healthy. ${paint(io.stdout, red, summary)}`,
    '',
    ...causes.flatMap((cause, index) => lines(io, cause, index, width)),
  ].join('\n')
}

function lines(io: Io, cause: ichor.v1.Cause, index: number, width: number): string[] {
  const number = `${String(index + 1).padStart(width)}. `
  const indent = ' '.repeat(number.length)
  const root = cause.because.length === 0
  const subject =
    cause.kind === Kind.FAILING || cause.kind === Kind.OUTSIDE || root ? paint(io.stdout, yellow, cause.subject) : cause.subject
  const behind = cause.because.map((at) => at + 1)
  return [
    `${number}${subject}: ${cause.sentence}${history(io, cause)}`,
    ...cause.error
      .split('\n')
      .filter(Boolean)
      .map((line) => `${indent}${paint(io.stdout, red, line)}`),
    ...(behind.length > 0 ? [`${indent}because of ${behind.join(', ')}`] : []),
  ]
}

function history(io: Io, { since, times }: ichor.v1.Cause): string {
  const when = since ? relativeTime(new Date(toMilliseconds(since)), io.now()) : ''
  if (times > 1) return ` (${times} times${when ? `, first ${when}` : ''})`
  return when ? ` (${when})` : ''
}
