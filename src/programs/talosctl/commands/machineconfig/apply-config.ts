import { Command } from 'commander'
import type { Cluster } from '../../cluster.ts'
import { UsageError } from '../../failure.ts'
import { array, list } from '../../flags.ts'
import type { Io } from '../../io.ts'
import { type ApplyFlags, applyOptions } from '../../machine-config/apply-mode.ts'
import { applyTo } from '../../machine-config/applying.ts'
import { readFileOrStdin, readPatches } from '../../patches.ts'

interface ApplyConfigFlags extends ApplyFlags {
  file?: string | undefined
  insecure?: boolean
  certFingerprint?: string[]
  configPatch?: string[]
  confirm?: boolean
}

/** talosctl apply-config */
export const applyConfig = (io: Io, cluster: Cluster) => {
  const command = new Command()
    .description('Give nodes a machine configuration.')
    .argument('[file]', 'the configuration, as with --file')
    .option('-f, --file <file>', 'the configuration; "-" is standard input')
    .option('-i, --insecure', 'the nodes are in maintenance mode and have no certificates yet')
    .option('--cert-fingerprint <hash>', 'with --insecure, talk only to a node whose certificate has this fingerprint', list())
    .option('-p, --config-patch <patch>', 'patch it first: YAML, JSON or @file; may be repeated', array())
    .option('--confirm', 'keep the configuration that was applied with --confirm-within or tried')
  for (const option of applyOptions()) command.addOption(option)
  return command.action((file: string | undefined, flags: ApplyConfigFlags) =>
    runApplyConfig(io, cluster, { ...flags, file: flags.file ?? file }),
  )
}

/** Reads, patches and applies a configuration. */
export async function runApplyConfig(io: Io, cluster: Cluster, flags: ApplyConfigFlags): Promise<void> {
  if (flags.confirm) {
    if (flags.file || flags.configPatch) throw new UsageError('--confirm keeps what is in force already: leave the file and patches out')
    return confirm(io, cluster)
  }
  if (!flags.file) throw new UsageError('no configuration is given: name the file with --file, "-" is standard input')
  if (flags.certFingerprint && !flags.insecure) throw new UsageError('--cert-fingerprint goes with --insecure only')
  const bytes = await readFileOrStdin(io, flags.file, 'configuration')
  if (bytes.length === 0) throw new UsageError(`configuration "${flags.file}" is empty`)
  const patches = await readPatches(flags.configPatch ?? [])
  const data = patches.length > 0 ? await patched(bytes, patches) : bytes
  if (!flags.insecure) {
    await cluster.named('apply-config')
    await applyTo(io, cluster, data, flags)
    return
  }
  const server = await cluster.insecure(flags.certFingerprint)
  try {
    await applyTo(io, server, data, flags)
  } finally {
    await server.close()
  }
}

/** Keeps what the nodes were given for a time. */
async function confirm(io: Io, cluster: Cluster): Promise<void> {
  await cluster.named('apply-config --confirm')
  const messages = await cluster.ask('ichor.v1.ConfigService/Confirm', {})
  const peer = await cluster.peer()
  for (const message of messages) io.stderr.write(`${cluster.nodeOf(message, peer)}: configuration ${message.id} is confirmed and stays\n`)
}

async function patched(bytes: Uint8Array, patches: string[]): Promise<Uint8Array> {
  const { parseConfig } = await import('../../../../os/config/parse.ts')
  return parseConfig(bytes).patch(...patches).bytes
}
