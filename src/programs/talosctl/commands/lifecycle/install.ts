import { Command } from 'commander'
import type { Cluster } from '../../cluster.ts'
import type { Io } from '../../io.ts'
import { type OutputFlags, outputOption } from '../../output/output.ts'
import { planSchema, showPlan } from '../../release/plan.ts'
import { sendImage } from '../../release/send.ts'

interface InstallFlags extends OutputFlags {
  disk?: string
  image?: string
  insecure?: boolean
  plan?: boolean
  reboot: boolean
  wipe?: boolean
}

/** Milliseconds that a node may take to get the image and write it. */
const installTimeout = 60 * 60_000

/** talosctl install */
export const install = (io: Io, cluster: Cluster) =>
  new Command()
    .description('Install the system on a disk of nodes that run from a medium; applying a configuration does it as well.')
    .option('--disk <path>', 'the disk, such as /dev/sda (default: that of the configuration)')
    .option('-i, --image <image>', 'installer image: a reference, or an OCI layout of this computer (default: the medium’s own)')
    .option('--insecure', 'the nodes are in maintenance mode')
    .option('--plan', 'only say what would be written where')
    .option('--no-reboot', 'stay on the medium afterwards')
    .option('--wipe', 'overwrite what is on the disk')
    .addOption(outputOption(planSchema, { about: 'with --plan a list, each item of which is' }))
    .action((flags: InstallFlags) => runInstall(io, cluster, flags))

/** Installs, or shows what an installation would do. */
export async function runInstall(io: Io, cluster: Cluster, flags: InstallFlags): Promise<void> {
  if (!flags.insecure) await cluster.named('install')
  const server = flags.insecure ? await cluster.insecure() : cluster
  const target = { disk: flags.disk ?? '', wipe: flags.wipe === true }
  const named = (node: string | undefined) => (flags.image ? sendImage(io, server, node, flags.image) : Promise.resolve(''))
  try {
    if (flags.plan) {
      await showPlan(io, server, flags, async (node) => ({ ...target, install: true, imageName: await named(node) }))
      return
    }
    const all = server.each(async function* (node, name, signal) {
      const request = { ...target, imageName: await named(node), reboot: flags.reboot }
      const messages = server.stream('ichor.v1.ReleaseService/Install', request, { node, signal })
      for await (const { message } of messages) yield `${name}: ${message}\n`
    }, installTimeout)
    for await (const line of all) io.stderr.write(line)
  } finally {
    if (server !== cluster) await server.close()
  }
}
