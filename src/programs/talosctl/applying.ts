import { type ApplyFlags, modeNumber } from './apply-mode.ts'
import type { Cluster } from './cluster.ts'
import type { Io } from './io.ts'
import { wireDuration } from './units.ts'

/** Hands a configuration to the nodes (or to one of them) and tells what each made of it. */
export async function applyTo(io: Io, cluster: Cluster, data: Uint8Array, flags: ApplyFlags, node?: string): Promise<void> {
  const request = { data, mode: modeNumber(flags.mode), dryRun: flags.dryRun === true, tryModeTimeout: wireDuration(flags.timeout) }
  const messages = await cluster.ask('machine.MachineService/ApplyConfiguration', request, { node, timeout: 120_000 })
  const peer = await cluster.peer()
  const several = messages.length > 1
  for (const message of messages) {
    const prefix = several ? `${cluster.nodeOf(message, node ?? peer)}: ` : ''
    for (const warning of message.warnings) io.stderr.write(`${prefix}WARNING: ${warning}\n`)
    const details = message.modeDetails.replace(/\n*$/, '')
    if (details) (flags.dryRun ? io.stdout : io.stderr).write(`${prefix}${details}\n`)
  }
}
