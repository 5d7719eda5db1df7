import { applyModes } from '../../../os/config/apply/mode.ts'
import { type ProtoTime, toDuration } from '../../../rpc/proto-time.ts'
import type { Cluster } from '../cluster.ts'
import { failedWith } from '../failure.ts'
import type { Io } from '../io.ts'
import { paintDiff } from '../output/diff-paint.ts'
import { rfc3339 } from '../output/units.ts'
import type { ApplyFlags } from './apply-mode.ts'
import { answered, confirmReached, type Reached } from './reaching.ts'

/** How long a node may take to judge and keep a configuration, in milliseconds. */
const applyTimeout = 120_000

/** What a node made of a configuration. */
interface Answer {
  readonly node: string
  readonly warnings: readonly string[]
  readonly details: string
  readonly confirmBy?: ProtoTime
}

/** Applies a configuration on the nodes (or on one of them), shows their answers, and confirms it where it may have cut a node off. */
export async function applyTo(io: Io, cluster: Cluster, data: Uint8Array, flags: ApplyFlags, node?: string): Promise<void> {
  await taken(io, cluster, flags, node, () => applied(cluster, data, flags, node))
}

/** Shows the answers of the nodes, and confirms the change. The answer of one node may be lost because of the change itself. */
async function taken(io: Io, cluster: Cluster, flags: ApplyFlags, node: string | undefined, take: () => Promise<Outcome>): Promise<void> {
  const nodes = await cluster.nodes()
  const one = node !== undefined || nodes.length <= 1
  const outcome = one && !flags.dryRun && flags.confirm !== false ? await answered(io, cluster, node ?? nodes[0], take) : await take()
  if (!outcome) {
    io.stderr.write('the answer was lost, and the configuration is in force\n')
    return
  }
  printAnswers(io, flags, outcome.answers)
  await confirmReached(io, cluster, outcome.messages, node)
}

interface Outcome {
  readonly answers: Answer[]
  readonly messages: readonly Reached[]
}

async function applied(cluster: Cluster, data: Uint8Array, flags: ApplyFlags, node?: string): Promise<Outcome> {
  const nodes = await cluster.nodes()
  // A single node is called directly: machines without this service reject fan-out before they report it as unimplemented.
  const options = { node: node ?? (nodes.length === 1 ? nodes[0] : undefined), timeout: applyTimeout }
  try {
    return await named(cluster, await cluster.ask('ichor.v1.ConfigService/Apply', { data, ...ways(flags) }, options), node)
  } catch (error) {
    // A machine that does not have this service takes what the field's method can say.
    if (!failedWith(error, 'Unimplemented') || flags.confirmWithin !== undefined || flags.force) throw error
  }
  const request = { data, mode: applyModes[flags.mode], dryRun: flags.dryRun === true, tryModeTimeout: toDuration(flags.timeout) }
  const messages = await cluster.ask('machine.MachineService/ApplyConfiguration', request, options)
  const { answers } = await named(
    cluster,
    messages.map((message) => ({ ...message, details: message.modeDetails })),
    node,
  )
  return { answers, messages: [] }
}

async function named<M extends Omit<Answer, 'node'> & Partial<Reached>>(
  cluster: Cluster,
  messages: readonly M[],
  node?: string,
): Promise<Outcome> {
  const peer = node ?? (await cluster.peer())
  return {
    answers: messages.map((message) => ({ ...message, node: cluster.nodeOf(message, peer) })),
    messages: messages.map(({ metadata, id = 0, reachWithin, reachAfter }) => ({ metadata, id, reachWithin, reachAfter })),
  }
}

/** Brings back a configuration of the nodes' history. */
export async function restoreOn(io: Io, cluster: Cluster, id: number, flags: ApplyFlags): Promise<void> {
  await taken(io, cluster, flags, undefined, async () => {
    const messages = await cluster.ask('ichor.v1.ConfigService/Restore', { id, ...ways(flags) }, { timeout: applyTimeout })
    return named(cluster, messages)
  })
}

const ways = ({ mode, dryRun, timeout, confirmWithin, force, confirm }: ApplyFlags) => ({
  force: force === true,
  noConfirm: confirm === false,
  reconnects: true,
  mode: applyModes[mode],
  dryRun: dryRun === true,
  tryTimeout: toDuration(timeout),
  ...(confirmWithin !== undefined && { confirmWithin: toDuration(confirmWithin) }),
})

function printAnswers(io: Io, { dryRun }: ApplyFlags, answers: readonly Answer[]): void {
  const output = dryRun ? io.stdout : io.stderr
  for (const { node, warnings, details, confirmBy } of answers) {
    const prefix = answers.length > 1 ? `${node}: ` : ''
    for (const warning of warnings) io.stderr.write(`${prefix}WARNING: ${warning}\n`)
    const text = details.replace(/\n*$/, '')
    if (text) output.write(`${prefix}${paintDiff(output, text)}\n`)
    if (confirmBy)
      io.stderr.write(`${prefix}confirm it with "talosctl apply-config --confirm" before ${rfc3339({ ...confirmBy, nanos: 0 })}\n`)
  }
}
