import { Command } from 'commander'
import { machine as wire } from '../../../../rpc/enums.ts'
import type { machine } from '../../../../rpc/messages.ts'
import type { Cluster } from '../../cluster.ts'
import { type ReplaceOptions, replaceMember } from '../../etcd/replace/replace.ts'
import { saveSnapshot } from '../../etcd/snapshot.ts'
import { UsageError } from '../../failure.ts'
import { duration, list } from '../../flags.ts'
import { type Io, remark } from '../../io.ts'
import { type OutputFlags, outputOption, structured, withNodes } from '../../output/output.ts'
import { messageSchema } from '../../output/schema.ts'
import { type Row, table } from '../../output/table.ts'
import { humanSize } from '../../output/units.ts'
import type { ReplyMetadata } from '../../reply-metadata.ts'
import { backup, restore } from './backup.ts'

const leaf = (name: string, description: string) => new Command(name).description(description)

/** talosctl etcd */
export const etcd = (io: Io, cluster: Cluster) =>
  new Command()
    .description('See to the etcd of the control planes.')
    .addCommand(alarm(io, cluster))
    .addCommand(backup(io, cluster))
    .addCommand(
      leaf('defrag', "Give free space of a member's database back; the member does not answer meanwhile.").action(() => runDefrag(cluster)),
    )
    .addCommand(downgrade(io, cluster))
    .addCommand(leaf('forfeit-leadership', 'Let another member lead.').action(() => runForfeit(io, cluster)))
    .addCommand(leaf('leave', 'Take the node out of the etcd cluster.').action(() => runLeave(cluster)))
    .addCommand(members('members', io, cluster))
    .addCommand(leaf('member', '').addCommand(members('list', io, cluster)), { hidden: true })
    .addCommand(
      leaf('remove-member', 'Remove a member that is permanently gone from the cluster.')
        .argument('<id>', 'its id, as "etcd members" shows it')
        .action((id: string) => runRemoveMember(cluster, id)),
    )
    .addCommand(restore(io, cluster))
    .addCommand(replace(io, cluster))
    .addCommand(
      leaf('snapshot', 'Save the database of a node to a file and verify it.')
        .argument('<path>', 'the file')
        .action((path: string) => runSnapshot(io, cluster, path)),
    )
    .addCommand(
      leaf('status', 'Show the state of each member.')
        .addOption(outputOption(messageSchema('machine.MachineService/EtcdStatus')))
        .action((flags: OutputFlags) => runStatus(io, cluster, flags)),
    )

const replace = (io: Io, cluster: Cluster) =>
  leaf('replace-member', 'Remove a member whose machine is gone, and wait until another control plane has its place.')
    .argument('<member>', 'its id, host name or address')
    .option('--dry-run', 'only show what would be done', true)
    .option('--no-dry-run', 'do it')
    .option('--with <node>', 'host name or address of the machine that takes the place (default: any new control plane)')
    .option('--config-file <file>', 'apply this configuration to the machine of --with, which waits in maintenance')
    .option('--cert-fingerprint <hash>', 'with --config-file, only if the certificate of the machine has this fingerprint', list())
    .option('--timeout <duration>', 'how long to wait for that machine', duration, 15 * 60_000)
    .option('--k8s-endpoint <url>', 'reach Kubernetes here instead of at the endpoint of the cluster')
    .action((member: string, options: ReplaceOptions) => replaceMember(io, cluster, member, options))

const members = (name: string, io: Io, cluster: Cluster) =>
  leaf(name, 'List the members.')
    .addOption(outputOption(messageSchema('machine.MachineService/EtcdMemberList')))
    .action((flags: OutputFlags) => runMembers(io, cluster, flags))

const alarm = (io: Io, cluster: Cluster) =>
  leaf('alarm', 'List or clear alarms.')
    .addCommand(
      leaf('list', 'List the alarms of each member.')
        .addOption(outputOption(messageSchema('machine.MachineService/EtcdAlarmList')))
        .action((flags: OutputFlags) => runAlarms(io, cluster, 'EtcdAlarmList', flags)),
    )
    .addCommand(
      leaf('disarm', 'Clear the alarms.')
        .addOption(outputOption(messageSchema('machine.MachineService/EtcdAlarmDisarm')))
        .action((flags: OutputFlags) => runAlarms(io, cluster, 'EtcdAlarmDisarm', flags)),
    )

const downgrade = (io: Io, cluster: Cluster) =>
  leaf('downgrade', 'Take etcd back to an earlier version.')
    .addCommand(
      leaf('validate', 'Check whether it is possible.')
        .argument('<version>')
        .addOption(outputOption(messageSchema('machine.MachineService/EtcdDowngradeValidate')))
        .action((version: string, flags: OutputFlags) => runDowngrade(io, cluster, 'Validate', flags, version)),
    )
    .addCommand(
      leaf('enable', 'Begin it.')
        .argument('<version>')
        .addOption(outputOption(messageSchema('machine.MachineService/EtcdDowngradeEnable')))
        .action((version: string, flags: OutputFlags) => runDowngrade(io, cluster, 'Enable', flags, version)),
    )
    .addCommand(
      leaf('cancel', 'Give it up.')
        .addOption(outputOption(messageSchema('machine.MachineService/EtcdDowngradeCancel')))
        .action((flags: OutputFlags) => runDowngrade(io, cluster, 'Cancel', flags)),
    )

/** Prints the members as each node sees them. */
export async function runMembers(io: Io, cluster: Cluster, { output }: OutputFlags): Promise<void> {
  const messages = await cluster.ask('machine.MachineService/EtcdMemberList', {})
  if (structured(io, output, withNodes(cluster, await cluster.peer(), messages))) return
  print(io, cluster, await cluster.peer(), messages, ['ID', 'HOSTNAME', 'PEER URLS', 'CLIENT URLS', 'LEARNER'], ({ members }) =>
    members.map((one) => [hex(one.id), one.hostname, one.peerUrls.join(','), one.clientUrls.join(','), one.isLearner]),
  )
}

const statusColumns = [
  'MEMBER',
  'DB SIZE',
  'IN USE',
  'LEADER',
  'RAFT INDEX',
  'RAFT TERM',
  'RAFT APPLIED INDEX',
  'LEARNER',
  'PROTOCOL',
  'STORAGE',
  'ERRORS',
]

/** Prints the state of each node's member. */
export async function runStatus(io: Io, cluster: Cluster, { output }: OutputFlags): Promise<void> {
  const messages = await cluster.ask('machine.MachineService/EtcdStatus', {})
  if (structured(io, output, withNodes(cluster, await cluster.peer(), messages))) return
  print(io, cluster, await cluster.peer(), messages, statusColumns, ({ memberStatus: one }) => {
    if (!one) return []
    const ratio = one.dbSize > 0 ? (100 * one.dbSizeInUse) / one.dbSize : 0
    return [
      [
        hex(one.memberId),
        humanSize(one.dbSize),
        `${humanSize(one.dbSizeInUse)} (${ratio.toFixed(2)}%)`,
        hex(one.leader),
        one.raftIndex,
        one.raftTerm,
        one.raftAppliedIndex,
        one.isLearner,
        one.protocolVersion,
        one.storageVersion,
        one.errors.join(', '),
      ],
    ]
  })
}

/** Lists or clears alarms and prints them. */
export async function runAlarms(
  io: Io,
  cluster: Cluster,
  method: 'EtcdAlarmList' | 'EtcdAlarmDisarm',
  { output }: OutputFlags,
): Promise<void> {
  if (method === 'EtcdAlarmDisarm') await cluster.named('clearing alarms')
  const messages = await cluster.ask(`machine.MachineService/${method}`, {})
  if (structured(io, output, withNodes(cluster, await cluster.peer(), messages as machine.EtcdAlarm[]))) return
  if (!messages.some(({ memberAlarms }) => memberAlarms.length > 0)) return
  const names = Object.entries(wire.EtcdMemberAlarm.AlarmType)
  print(io, cluster, await cluster.peer(), messages as machine.EtcdAlarm[], ['MEMBER', 'ALARM'], ({ memberAlarms }) =>
    memberAlarms.map(({ memberId, alarm }) => [hex(memberId), names.find(([, value]) => value === alarm)?.[0] ?? alarm]),
  )
}

/** Defragments the member of the one named node. */
export async function runDefrag(cluster: Cluster): Promise<void> {
  await cluster.single('etcd defrag')
  await cluster.named('defragmenting')
  await cluster.ask('machine.MachineService/EtcdDefragment', {}, { timeout: 10 * 60_000 })
}

/** Validates, starts or cancels a downgrade. */
export async function runDowngrade(
  io: Io,
  cluster: Cluster,
  step: 'Validate' | 'Enable' | 'Cancel',
  { output }: OutputFlags,
  version = '',
): Promise<void> {
  if (step !== 'Validate') await cluster.named('the downgrade')
  const messages =
    step === 'Cancel'
      ? await cluster.ask('machine.MachineService/EtcdDowngradeCancel', {})
      : await cluster.ask(`machine.MachineService/EtcdDowngrade${step}`, { version })
  if (structured(io, output, withNodes(cluster, await cluster.peer(), messages as machine.EtcdDowngradeCancel[]))) return
  const done = `downgrade ${step.toLowerCase()} success`
  print(io, cluster, await cluster.peer(), messages as machine.EtcdDowngradeCancel[], ['MESSAGE'], ({ clusterDowngrade }) => [
    [`${done}, cluster version ${clusterDowngrade?.clusterVersion ?? ''}`],
  ])
}

/** Moves the leadership away from the named nodes. */
export async function runForfeit(io: Io, cluster: Cluster): Promise<void> {
  await cluster.named('giving up the leadership')
  const messages = await cluster.ask('machine.MachineService/EtcdForfeitLeadership', {}, { timeout: 60_000 })
  const peer = await cluster.peer()
  for (const message of messages) {
    const node = cluster.nodeOf(message, peer)
    remark(io, message.member ? `${node}: the leader is now ${message.member}\n` : `${node}: was not the leader\n`)
  }
}

/** Takes the one named node out of the etcd cluster. */
export async function runLeave(cluster: Cluster): Promise<void> {
  await cluster.named('leaving etcd')
  await cluster.ask('machine.MachineService/EtcdLeaveCluster', {}, { timeout: 5 * 60_000 })
}

/** Takes a member out of the cluster by its id. */
export async function runRemoveMember(cluster: Cluster, id: string): Promise<void> {
  if (!/^(0x)?[0-9a-f]{1,16}$/i.test(id))
    throw new UsageError(`member id "${id}" is not one: want up to 16 hexadecimal digits, see "talosctl etcd members"`)
  await cluster.single('etcd remove-member')
  await cluster.ask(
    'machine.MachineService/EtcdRemoveMemberByID',
    { memberId: BigInt(`0x${id.replace(/^0x/i, '')}`).toString() },
    { timeout: 60_000 },
  )
}

/** Saves a node's database, verifies it and prints what is in it. */
export async function runSnapshot(io: Io, cluster: Cluster, path: string): Promise<void> {
  await cluster.single('etcd snapshot')
  const chunks = cluster.stream('machine.MachineService/EtcdSnapshot', {})
  const { bytes, info } = await saveSnapshot(chunks, path)
  io.stdout.write(`etcd snapshot saved to "${path}" (${bytes} bytes)\n`)
  io.stdout.write(`snapshot info: hash ${info.hash}, revision ${info.revision}, total keys ${info.keys}, total size ${info.size}\n`)
}

function print<Message extends { metadata?: ReplyMetadata | null }>(
  io: Io,
  cluster: Cluster,
  peer: string,
  messages: readonly Message[],
  header: readonly string[],
  rows: (message: Message) => Row[],
): void {
  const several = messages.some(({ metadata }) => metadata?.hostname)
  const all: Row[] = [
    ['NODE', ...header],
    ...messages.flatMap((message) => rows(message).map((row) => [cluster.nodeOf(message, peer), ...row])),
  ]
  io.stdout.write(table(several ? all : all.map(([, ...rest]) => rest)))
}

function hex(decimal: string): string {
  return BigInt(decimal || 0)
    .toString(16)
    .padStart(16, '0')
}
