import { Command } from 'commander'
import { common, machine as wire } from '../../../../rpc/enums.ts'
import type { machine } from '../../../../rpc/messages.ts'
import type { Cluster } from '../../cluster.ts'
import { UsageError } from '../../failure.ts'
import type { Io } from '../../io.ts'
import { type OutputFlags, outputOption, structured, withNodes } from '../../output/output.ts'
import { messageSchema } from '../../output/schema.ts'
import { type Row, table } from '../../output/table.ts'

interface NetstatOptions extends OutputFlags {
  all?: boolean
  listening?: boolean
  extend?: boolean
  pods?: boolean
  programs?: boolean
  timers?: boolean
  verbose?: boolean
  tcp?: boolean
  udp?: boolean
  udplite?: boolean
  raw?: boolean
  ipv4?: boolean
  ipv6?: boolean
}

/** talosctl netstat */
export const netstat = (io: Io, cluster: Cluster) =>
  new Command()
    .description('List the sockets of each node: its connections, or with flags those that listen or all.')
    .argument('[pod]', 'only the sockets of this pod, as "namespace/name"')
    .option('-a, --all', 'both connected and listening ones')
    .option('-x, --extend', 'with owner and inode')
    .option('-4, --ipv4', 'only IPv4')
    .option('-6, --ipv6', 'only IPv6')
    .option('-l, --listening', 'only those that listen')
    .option('-k, --pods', 'those of pods too, with their names')
    .option('-p, --programs', 'with the process that holds them')
    .option('-w, --raw', 'only raw ones')
    .option('-t, --tcp', 'only TCP')
    .option('-o, --timers', 'with their timers')
    .option('-u, --udp', 'only UDP')
    .option('-U, --udplite', 'only UDP-Lite')
    .option('-v, --verbose', 'all protocols')
    .addOption(outputOption(messageSchema('machine.MachineService/Netstat'), { short: false }))
    .action((pod: string | undefined, options: NetstatOptions) => runNetstat(io, cluster, pod, options))

/** Prints the sockets of all nodes. */
export async function runNetstat(io: Io, cluster: Cluster, pod: string | undefined, options: NetstatOptions): Promise<void> {
  const { podNames, onNode } = options.pods || pod !== undefined ? await podNamespaces(cluster) : noPods
  const netns = [...podNames].filter(([, name]) => name === pod).map(([namespace]) => namespace)
  if (pod !== undefined && netns.length === 0) {
    if (onNode.has(pod))
      throw new UsageError(`pod "${pod}" is on the node's own network: leave the pod out, and look for its program with -p`)
    throw new UsageError(`pod "${pod}" runs on none of the nodes: there are ${[...new Set(podNames.values())].toSorted().join(', ')}`)
  }
  const request = {
    filter: options.all
      ? wire.NetstatRequest.Filter.ALL
      : options.listening
        ? wire.NetstatRequest.Filter.LISTENING
        : wire.NetstatRequest.Filter.CONNECTED,
    feature: { pid: options.programs === true },
    l4proto: protocols(options),
    netns:
      pod !== undefined
        ? { hostnetwork: false, netns, allnetns: false }
        : { hostnetwork: true, netns: [], allnetns: options.pods === true },
  }
  const messages = await cluster.ask('machine.MachineService/Netstat', request, { timeout: 60_000 })
  const peer = await cluster.peer()
  if (structured(io, options.output, withNodes(cluster, peer, messages))) return
  const several = messages.some(({ metadata }) => metadata?.hostname)
  const rows = messages.flatMap((message) =>
    message.connectrecord.map((record) => [cluster.nodeOf(message, peer), ...columns(record, options, podNames)]),
  )
  const all: Row[] = [['NODE', ...header(options)], ...rows]
  io.stdout.write(table(several ? all : all.map(([, ...rest]) => rest)))
}

function protocols(options: NetstatOptions): machine.NetstatRequest.L4proto {
  const any = options.tcp || options.udp || options.udplite || options.raw
  const wanted = (flag: boolean | undefined, usual: boolean) => options.verbose === true || (any ? flag === true : usual)
  const both = options.ipv4 === options.ipv6
  const [v4, v6] = [both || options.ipv4 === true, both || options.ipv6 === true]
  const [tcp, udp] = [wanted(options.tcp, true), wanted(options.udp, true)]
  const [udplite, raw] = [wanted(options.udplite, false), wanted(options.raw, false)]
  return {
    tcp: tcp && v4,
    tcp6: tcp && v6,
    udp: udp && v4,
    udp6: udp && v6,
    udplite: udplite && v4,
    udplite6: udplite && v6,
    raw: raw && v4,
    raw6: raw && v6,
  }
}

function header({ extend, programs, pods, timers }: NetstatOptions): string[] {
  const names = ['Proto', 'Recv-Q', 'Send-Q', 'Local Address', 'Foreign Address', 'State']
  if (extend) names.push('Uid', 'Inode')
  if (programs) names.push('PID/Program name')
  if (pods) names.push('Pod')
  if (timers) names.push('Timer')
  return names
}

function columns(
  record: machine.ConnectRecord,
  { extend, programs, pods, timers }: NetstatOptions,
  podNames: ReadonlyMap<string, string>,
): Row {
  const row: unknown[] = [
    record.l4proto,
    record.rxqueue,
    record.txqueue,
    `${record.localip}:${record.localport || '*'}`,
    `${record.remoteip}:${record.remoteport || '*'}`,
    state(record),
  ]
  if (extend) row.push(record.uid, record.inode)
  if (programs) row.push(record.process?.pid ? `${record.process.pid}/${record.process.name}` : '-')
  if (pods) row.push(podNames.get(record.netns) ?? (record.netns || '-'))
  if (timers) row.push(timer(record))
  return row
}

const states = Object.entries(wire.ConnectRecord.State)

function state({ state: number }: machine.ConnectRecord): string {
  if (number === wire.ConnectRecord.State.CLOSE || number === wire.ConnectRecord.State.RESERVED) return ''
  return states.find(([, value]) => value === number)?.[0] ?? String(number)
}

function timer({ tr, timerwhen, retrnsmt, timeout }: machine.ConnectRecord): string {
  const name = Object.entries(wire.ConnectRecord.TimerActive).find(([, value]) => value === tr)?.[0] ?? String(tr)
  return `${name.toLowerCase()} (${(timerwhen / 100).toFixed(2)}/${retrnsmt}/${timeout})`
}

interface PodNetworks {
  /** Names of pods by the network namespace they live in. */
  readonly podNames: ReadonlyMap<string, string>
  /** Those that live in the node's own. */
  readonly onNode: ReadonlySet<string>
}

const noPods: PodNetworks = { podNames: new Map(), onNode: new Set() }

async function podNamespaces(cluster: Cluster): Promise<PodNetworks> {
  const messages = await cluster.ask('machine.MachineService/Containers', { namespace: 'k8s.io', driver: common.ContainerDriver.CRI })
  const podNames = new Map<string, string>()
  const onNode = new Set<string>()
  for (const { networkNamespace, podId } of messages.flatMap(({ containers }) => containers)) {
    // Only a sandbox names a network, and only one that was made for its pod.
    if (networkNamespace) podNames.set(networkNamespace, podId)
    else if (podId) onNode.add(podId)
  }
  for (const podId of podNames.values()) onNode.delete(podId)
  return { podNames, onNode }
}
