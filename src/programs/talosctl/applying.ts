import { type ApplyFlags, modeNumber } from './apply-mode.ts'
import type { Cluster } from './cluster.ts'
import { paintDiff } from './diff-paint.ts'
import type { Io } from './io.ts'
import { rfc3339, wireDuration } from './units.ts'

/** How long a node may take to judge and keep a configuration, in milliseconds. */
const patience = 120_000

/** What a node made of a configuration. */
interface Answer {
  readonly node: string
  readonly warnings: readonly string[]
  readonly details: string
  readonly confirmBy?: { seconds: number; nanos: number }
}

/** Hands a configuration to the nodes (or to one of them) and tells what each made of it. */
export async function applyTo(io: Io, cluster: Cluster, data: Uint8Array, flags: ApplyFlags, node?: string): Promise<void> {
  tell(
    io,
    flags,
    flags.confirmWithin === undefined ? await applied(cluster, data, flags, node) : await provisional(cluster, data, flags, node),
  )
}

async function applied(cluster: Cluster, data: Uint8Array, flags: ApplyFlags, node?: string): Promise<Answer[]> {
  const request = { data, mode: modeNumber(flags.mode), dryRun: flags.dryRun === true, tryModeTimeout: wireDuration(flags.timeout) }
  const messages = await cluster.ask('machine.MachineService/ApplyConfiguration', request, { node, timeout: patience })
  const peer = node ?? (await cluster.peer())
  return messages.map((message) => ({ node: cluster.nodeOf(message, peer), warnings: message.warnings, details: message.modeDetails }))
}

async function provisional(cluster: Cluster, data: Uint8Array, flags: ApplyFlags, node?: string): Promise<Answer[]> {
  const messages = await cluster.ask('ichor.v1.ConfigService/Apply', { data, ...ways(flags) }, { node, timeout: patience })
  const peer = node ?? (await cluster.peer())
  return messages.map((message) => ({ ...message, node: cluster.nodeOf(message, peer) }))
}

/** Brings back a configuration of the nodes' history. */
export async function restoreOn(io: Io, cluster: Cluster, id: number, flags: ApplyFlags): Promise<void> {
  const messages = await cluster.ask('ichor.v1.ConfigService/Restore', { id, ...ways(flags) }, { timeout: patience })
  const peer = await cluster.peer()
  tell(
    io,
    flags,
    messages.map((message) => ({ ...message, node: cluster.nodeOf(message, peer) })),
  )
}

const ways = ({ mode, dryRun, timeout, confirmWithin }: ApplyFlags) => ({
  mode: modeNumber(mode),
  dryRun: dryRun === true,
  tryTimeout: wireDuration(timeout),
  ...(confirmWithin === undefined ? {} : { confirmWithin: wireDuration(confirmWithin) }),
})

function tell(io: Io, { dryRun }: ApplyFlags, answers: readonly Answer[]): void {
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
