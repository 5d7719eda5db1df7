import { Command } from 'commander'
import { stringify } from 'yaml'
import { ichor } from '../../../../rpc/enums.ts'
import { toDuration } from '../../../../rpc/proto-time.ts'
import { Cluster } from '../../cluster.ts'
import { saveBackup } from '../../etcd/backup-file.ts'
import { downloaded } from '../../etcd/backup-source.ts'
import { type RestoreOptions, restoreEtcd } from '../../etcd/restore.ts'
import { ExitCode } from '../../failure.ts'
import { duration, list } from '../../flags.ts'
import { discoverMembers } from '../../health/view.ts'
import type { Io } from '../../io.ts'
import { type OutputFlags, outputOption, structured, withNodes } from '../../output/output.ts'
import { messageSchema } from '../../output/schema.ts'
import { table } from '../../output/table.ts'
import { humanSize } from '../../output/units.ts'

/** talosctl etcd backup */
export const backup = (io: Io, cluster: Cluster) =>
  new Command('backup')
    .description('See and take backups of etcd, as an EtcdBackupConfig declares them.')
    .addCommand(
      new Command('list')
        .description('List the backups in the targets of the control planes.')
        .addOption(outputOption(messageSchema('ichor.v1.EtcdBackupService/List')))
        .action((flags: OutputFlags) => runBackupList(io, cluster, flags)),
    )
    .addCommand(
      new Command('create')
        .description('Take a backup of the member of a node now, verify it and store it in every target.')
        .action(() => runBackupCreate(io, cluster)),
    )
    .addCommand(
      new Command('download')
        .description('Save a backup as it is stored, encrypted, and verify it.')
        .argument('<name>', 'its name, as "etcd backup list" shows it')
        .argument('<path>', 'the file')
        .action((name: string, path: string) => runBackupDownload(io, cluster, name, path)),
    )
    .addCommand(
      new Command('sender')
        .description('Let another cluster store its backups on these control planes: print the target for its EtcdBackupConfig.')
        .argument('<name>', 'its name, as in the EtcdBackupStoreConfig of these control planes')
        .option('--crt-ttl <duration>', 'how long its certificate is valid', duration, duration('8760h'))
        .action((name: string, { crtTtl }: { crtTtl: number }) => runBackupSender(io, cluster, name, crtTtl)),
    )

/** talosctl etcd restore */
export const restore = (io: Io, cluster: Cluster) =>
  new Command('restore')
    .description('Replace etcd of the whole cluster by a backup; continues where it was interrupted.')
    .requiredOption('--from <backup>', 'a file, or the name of a backup as "etcd backup list" shows it')
    .option('--identity <file>', 'decrypt it with the identities of age in this file (default: with the identity of the cluster)')
    .option('--skip-hash-check', 'take a database without a hash, copied out of a data directory')
    .option('--control-plane-nodes <node>', 'addresses of the control planes (default: what the cluster knows)', list())
    .option('--dry-run', 'verify the backup and only show what would be done')
    .option('--yes', 'do it: all data of the cluster is replaced')
    .option('--k8s-endpoint <url>', 'reach Kubernetes here instead of at the endpoint of the cluster')
    .action((options: RestoreOptions) => restoreEtcd(io, cluster, options))

/** Runs `act` with the nodes that were named, or with all control planes that the cluster knows. */
async function onControlPlanes(io: Io, cluster: Cluster, act: (nodes: Cluster) => Promise<void>): Promise<void> {
  const target = await cluster.target()
  const known = target.nodes.length > 0 ? target.nodes : (await discoverMembers(cluster)).controlPlanes.toSorted()
  const all = new Cluster(io, { ...target, nodes: known })
  try {
    await act(all)
  } finally {
    await all.close()
  }
}

/** Prints the backups of each control plane; fails when a target could not be listed. */
export const runBackupList = (io: Io, cluster: Cluster, { output }: OutputFlags): Promise<void> =>
  onControlPlanes(io, cluster, async (nodes) => {
    const messages = await nodes.ask('ichor.v1.EtcdBackupService/List', {}, { timeout: 120_000 })
    const peer = await nodes.peer()
    if (!structured(io, output, withNodes(nodes, peer, messages))) {
      const rows = messages.flatMap((message) =>
        message.backups.map((one) => [
          nodes.nodeOf(message, peer),
          one.target,
          one.name,
          new Date((one.taken?.seconds ?? 0) * 1000).toISOString().replace('.000', ''),
          one.revision,
          humanSize(one.size),
          stateName(one.state),
        ]),
      )
      io.stdout.write(table([['NODE', 'TARGET', 'NAME', 'TAKEN', 'REVISION', 'SIZE', 'STATE'], ...rows]))
    }
    for (const message of messages)
      for (const name of message.foreign)
        io.stderr.write(`${nodes.nodeOf(message, peer)}: ${name} is no backup of this cluster, it is left alone\n`)
    failOn(io, peer, messages)
  })

const stateName = (state: number): string =>
  (Object.entries(ichor.v1.EtcdBackup.State).find(([, value]) => value === state)?.[0] ?? String(state)).toLowerCase()

/** Reports targets that failed. */
function failOn(
  io: Io,
  peer: string,
  messages: readonly { errors: { target: string; message: string }[]; metadata?: { hostname: string } | null }[],
): void {
  const failed = messages.flatMap((message) => message.errors.map((error) => ({ node: message.metadata?.hostname || peer, ...error })))
  for (const { node, target, message } of failed) io.stderr.write(`${node}: target "${target}": ${message}\n`)
  if (failed.length > 0) throw new ExitCode(1)
}

/** Takes a backup on the one named node. */
export async function runBackupCreate(io: Io, cluster: Cluster): Promise<void> {
  await cluster.single('etcd backup create')
  const messages = await cluster.ask('ichor.v1.EtcdBackupService/Create', {}, { timeout: 60 * 60_000 })
  for (const { name, revision, keys, size, targets } of messages)
    io.stdout.write(
      `${name}: revision ${revision}, total keys ${keys}, ${humanSize(size)}, stored in ${targets.length > 0 ? targets.join(', ') : 'no target'}\n`,
    )
  failOn(io, await cluster.peer(), messages)
}

/** Saves a backup of the one named node as it is stored. */
export async function runBackupDownload(io: Io, cluster: Cluster, name: string, path: string): Promise<void> {
  await cluster.single('etcd backup download')
  const bytes = await saveBackup(downloaded(cluster, undefined, name), path)
  io.stdout.write(`backup saved to "${path}" (${bytes} bytes)\n`)
}

/** Prints the target with which another cluster stores its backups at the endpoints of this one. `lifetime` is in milliseconds. */
export async function runBackupSender(io: Io, cluster: Cluster, sender: string, lifetime: number): Promise<void> {
  await cluster.single('etcd backup sender')
  const { endpoints, nodes } = await cluster.target()
  const [message] = await cluster.ask('ichor.v1.EtcdBackupStoreService/IssueSender', { sender, lifetime: toDuration(lifetime) })
  if (!message) throw new Error('no node answered')
  const text = (pem: Uint8Array) => Buffer.from(pem).toString('base64')
  const { ca, crt, key } = message
  const peer = { endpoints: endpoints.length > 0 ? [...endpoints] : [...nodes], ca: text(ca), crt: text(crt), key: text(key) }
  io.stdout.write(stringify({ targets: [{ name: 'peer', peer }] }, { lineWidth: 0 }))
}
