import { Command } from 'commander'
import type { Cluster } from '../../cluster.ts'
import { NodeErrors, UsageError } from '../../failure.ts'
import { array } from '../../flags.ts'
import type { Io } from '../../io.ts'
import { type ApplyFlags, applyOptions } from '../../machine-config/apply-mode.ts'
import { applyTo } from '../../machine-config/applying.ts'
import { checkChangeable, machineConfig } from '../../machine-config/machine-config.ts'
import { readPatches } from '../../patches.ts'

interface PatchFlags extends ApplyFlags {
  namespace?: string
  patch?: string[]
  patchFile?: string
}

/** talosctl patch */
export const patch = (io: Io, cluster: Cluster) => {
  const command = new Command()
    .description('Patch the machine configuration of nodes.')
    .argument('<type>', '"machineconfig"')
    .argument('[id]', 'the resource', 'v1alpha1')
    .option('--namespace <namespace>', "look in this namespace instead of the type's own")
    .option('-p, --patch <patch>', 'the patch: YAML, JSON or @file; may be repeated', array())
    .option('--patch-file <file>', 'file that holds the patch')
  for (const option of applyOptions()) command.addOption(option)
  return command.action((type: string, id: string, flags: PatchFlags) => runPatch(io, cluster, type, id, flags))
}

/** Patches each named node's own configuration and applies it there. */
export async function runPatch(io: Io, cluster: Cluster, type: string, id: string, flags: PatchFlags): Promise<void> {
  checkChangeable(type)
  const given = [...(flags.patch ?? []), ...(flags.patchFile ? [`@${flags.patchFile}`] : [])]
  if (given.length === 0) throw new UsageError('no patch is given: use --patch or --patch-file')
  const patches = await readPatches(given)
  const nodes = await cluster.named('patch')
  const { parseConfig } = await import('../../../../os/config/parse.ts')
  const failed: { node: string; error: Error }[] = []
  for (const node of nodes) {
    try {
      const { bytes } = parseConfig(await machineConfig(cluster, node, id)).patch(...patches)
      // Applied even when it changes nothing: that is how a configuration on trial is made to stay.
      await applyTo(io, cluster, bytes, flags, node)
      io.stderr.write(`patched MachineConfigs.config.talos.dev/${id} at the node ${node}${flags.dryRun ? ' (dry run)' : ''}\n`)
    } catch (error) {
      // What does not fit one node may fit the next.
      if (io.signal.aborted || nodes.length === 1) throw error
      failed.push({ node, error: error as Error })
    }
  }
  if (failed.length > 0) throw new NodeErrors(failed)
}
