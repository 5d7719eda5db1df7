/** Fills a node's state: figures at every look, streams for what comes by itself. A node that is away is tried again. */

import type { machine } from '../../../rpc/messages.ts'
import { RpcError } from '../../../rpc/status.ts'
import { pause } from '../../../timing/pause.ts'
import type { Cluster } from '../cluster.ts'
import { describeEvent, eventsOf } from '../event.ts'
import { describe } from '../failure.ts'
import { specOf } from '../resource/definition.ts'
import type { NodeState, ProcessLine, RateLine } from './state.ts'

const history = 300
const keptLines = 500
const sector = 512
const again = 3000
/** Milliseconds for an explanation, which waits for what does not answer, and between two. */
const explainTimeout = 15_000
const explainInterval = 10_000
/** Milliseconds after which a screen that shows explanations is noticed. */
const explainLook = 250

interface CallOptions {
  readonly node: string | undefined
  readonly timeout: number
  readonly signal: AbortSignal
}

/** One node being watched. */
export class NodeWatch {
  #before?: { at: number; busy: number; all: number; moved: Map<string, [number, number]>; spent: Map<number, number> } | undefined

  constructor(
    readonly cluster: Cluster,
    readonly state: NodeState,
    /** The node's name in metadata; undefined targets the endpoint itself. */
    readonly node: string | undefined,
  ) {}

  /** One reading of all figures; processes only where they are shown, since they cost the node most. Failures are part of the state. */
  async look(timeout: number, signal: AbortSignal, wanted: { processes: boolean }): Promise<void> {
    const { cluster, node, state } = this
    const options = { node, timeout, signal }
    try {
      const [stat, memory, load, network, disks, processes, services] = await Promise.all([
        cluster.unary('machine.MachineService/SystemStat', {}, options),
        cluster.unary('machine.MachineService/Memory', {}, options),
        cluster.unary('machine.MachineService/LoadAvg', {}, options),
        cluster.unary('machine.MachineService/NetworkDeviceStats', {}, options),
        cluster.unary('machine.MachineService/DiskStats', {}, options),
        wanted.processes ? cluster.unary('machine.MachineService/Processes', {}, options) : undefined,
        cluster.unary('machine.MachineService/ServiceList', {}, options),
      ])
      this.#figures(stat.messages[0], network.messages[0], disks.messages[0], processes?.messages[0])
      const { meminfo } = memory.messages[0] ?? {}
      if (meminfo) {
        state.memoryTotal = meminfo.memtotal * 1024
        state.memoryUsed = (meminfo.memtotal - meminfo.memavailable) * 1024
        push(state.memory, (state.memoryUsed / Math.max(1, state.memoryTotal)) * 100, history)
      }
      const averages = load.messages[0]
      if (averages) state.load = [averages.load1, averages.load5, averages.load15]
      state.services = (services.messages[0]?.services ?? []).map(({ id, state: now, health }) => ({
        id,
        state: now,
        healthy: health?.unknown ? undefined : health?.healthy,
      }))
      state.error = ''
    } catch (error) {
      if (signal.aborted) return
      state.error = describe(error).replace(/\s+/g, ' ').trim()
      this.#before = undefined
    }
  }

  /** What changes seldom: who the node is and how it fares as a whole. */
  async identify(timeout: number, signal: AbortSignal): Promise<void> {
    const { cluster, node, state } = this
    const options = { node, timeout, signal }
    const spec = async (type: string, namespace: string, id: string) => {
      try {
        const { resource } = await cluster.unary('cosi.resource.State/Get', { type, namespace, id }, options)
        return (resource && (specOf(resource) as Record<string, unknown>)) || {}
      } catch (error) {
        if (error instanceof RpcError && ['NotFound', 'PermissionDenied'].includes(error.status)) return {}
        throw error
      }
    }
    try {
      const [version, hostname, machineStatus, type, addresses, kubelet] = await Promise.all([
        cluster.unary('machine.MachineService/Version', {}, options),
        spec('HostnameStatuses.net.talos.dev', 'network', 'hostname'),
        spec('MachineStatuses.runtime.talos.dev', 'runtime', 'machine'),
        spec('MachineTypes.config.talos.dev', 'config', 'machine-type'),
        spec('NodeAddresses.net.talos.dev', 'network', 'current'),
        spec('KubeletSpecs.kubernetes.talos.dev', 'k8s', 'kubelet'),
      ])
      state.version = version.messages[0]?.version?.tag ?? ''
      state.hostname = String(hostname.hostname ?? '')
      state.stage = String(machineStatus.stage ?? '')
      const status = (machineStatus.status ?? {}) as { ready?: boolean; unmetConditions?: { name: string; reason: string }[] }
      state.ready = status.ready === true
      state.unmet = (status.unmetConditions ?? []).map(({ name, reason }) => `${name}: ${reason}`)
      state.type = typeof type === 'string' ? type : String(Object.values(type)[0] ?? '')
      state.addresses = ((addresses.addresses ?? []) as string[]).map((address) => address.replace(/\/\d+$/, ''))
      const image = String(kubelet.image ?? '')
      state.kubernetes = image.slice(image.lastIndexOf(':') + 1)
      state.members = (await this.#list('Members.cluster.talos.dev', 'cluster', options)).length
      state.paths = await this.#paths(options)
      const manager = await spec('SiderolinkStatuses.siderolink.talos.dev', 'siderolink', 'siderolink-status')
      state.managed = manager.host ? `${manager.host} ${manager.connected ? 'connected' : 'not heard'}` : undefined
    } catch {
      // the figures show that the node is away
    }
  }

  /** The specs of all resources of a type. */
  async #list(type: string, namespace: string, options: CallOptions): Promise<Record<string, unknown>[]> {
    const found: Record<string, unknown>[] = []
    for await (const { resource } of this.cluster.stream('cosi.resource.State/List', { type, namespace }, options))
      if (resource) found.push((specOf(resource) ?? {}) as Record<string, unknown>)
    return found
  }

  /** How packets leave the node. */
  async #paths(options: CallOptions): Promise<[string, string][]> {
    const [addresses, routes, resolvers, servers] = await Promise.all([
      this.#list('AddressStatuses.net.talos.dev', 'network', options),
      this.#list('RouteStatuses.net.talos.dev', 'network', options),
      this.#list('ResolverStatuses.net.talos.dev', 'network', options),
      this.#list('TimeServerStatuses.net.talos.dev', 'network', options),
    ])
    const values = (rows: Record<string, unknown>[], key: string) =>
      rows.flatMap((row) => (row[key] as string[] | undefined) ?? []).join(' ')
    return [
      ...addresses.flatMap((row): [string, string][] => (row.linkName === 'lo' ? [] : [[String(row.linkName), String(row.address)]])),
      ...routes.flatMap(({ dst, gateway, outLinkName, priority }): [string, string][] =>
        dst || !gateway ? [] : [['default', `by ${gateway} on ${outLinkName}, metric ${priority}`]],
      ),
      ['names', values(resolvers, 'dnsServers') || 'no server'],
      ['time', values(servers, 'timeServers') || 'no server'],
    ]
  }

  /** Keeps what is wrong. The node probes its gateway, its servers and the endpoint of the cluster for this. */
  async #explain(signal: AbortSignal, wanted: () => boolean): Promise<void> {
    const { state, node } = this
    for (let due = 0; !signal.aborted; await pause(explainLook, signal)) {
      if (!wanted() || performance.now() < due) continue
      try {
        state.reasons = await this.#reasons({ node, timeout: explainTimeout, signal })
      } catch {
        state.reasons = [] // the figures show that the node is away
      }
      due = performance.now() + explainInterval
    }
  }

  async #reasons(options: CallOptions): Promise<string[]> {
    const { messages } = await this.cluster.unary('ichor.v1.ExplainService/Explain', {}, options)
    return (messages[0]?.causes ?? []).map(({ subject, sentence, error }) => {
      const last = error.trimEnd().split('\n').at(-1)
      return `${subject}: ${sentence}${last ? `: ${last}` : ''}`
    })
  }

  /** The kernel's messages and the machine's events as they come, until the signal fires; while `explained`, what is wrong too. */
  async follow(signal: AbortSignal, explained: () => boolean): Promise<void> {
    const { cluster, node, state } = this
    await Promise.all([
      this.#explain(signal, explained),
      withRetries(signal, async () => {
        state.kernelLog.length = 0
        const decoder = new TextDecoder()
        let rest = ''
        for await (const { bytes } of cluster.stream('machine.MachineService/Dmesg', { follow: true, tail: false }, { node, signal })) {
          const lines = (rest + decoder.decode(bytes, { stream: true })).split('\n')
          rest = lines.pop() ?? ''
          // Each message is one of its own and may lack its newline.
          if (rest !== '' && bytes.length < 4096) {
            lines.push(rest)
            rest = ''
          }
          for (const line of lines) if (line) push(state.kernelLog, line, keptLines)
        }
      }),
      withRetries(signal, async () => {
        state.events.length = 0
        for await (const { id, data } of eventsOf(cluster, { tailEvents: 100 }, { node, signal })) {
          const { source, message } = describeEvent(data)
          push(state.events, `${timeOf(id)} ${source}: ${message}`, keptLines)
        }
      }),
    ])
  }

  #figures(
    stat: machine.SystemStat | undefined,
    network: machine.NetworkDeviceStats | undefined,
    disks: machine.DiskStats | undefined,
    processes: machine.Process | undefined,
  ): void {
    const { state } = this
    const before = this.#before
    const at = performance.now()
    const { idle = 0, iowait = 0, ...busyTimes } = stat?.cpuTotal ?? ({} as machine.CPUStat)
    const { guest: _, guestNice: __, ...counted } = busyTimes
    const busy = Object.values(counted).reduce((sum: number, value) => sum + Number(value ?? 0), 0)
    const all = busy + idle + iowait
    const seconds = before ? Math.max(0.001, (at - before.at) / 1000) : 1
    const moved = new Map<string, [number, number]>()
    const rates = (kind: string, devices: readonly { name: string; inward: number; outward: number }[]): RateLine[] =>
      devices.map(({ name, inward, outward }) => {
        const key = `${kind} ${name}`
        moved.set(key, [inward, outward])
        const [lastIn, lastOut] = before?.moved.get(key) ?? [inward, outward]
        return { name, inward: Math.max(0, inward - lastIn) / seconds, outward: Math.max(0, outward - lastOut) / seconds }
      })
    state.uptime = stat?.bootTime ? Date.now() / 1000 - stat.bootTime : 0
    state.processors = stat?.cpu.length ?? 0
    if (before && all > before.all) push(state.cpu, ((busy - before.busy) / (all - before.all)) * 100, history)
    state.network = rates(
      'net',
      (network?.devices ?? []).map(({ name, rxBytes, txBytes }) => ({ name, inward: rxBytes, outward: txBytes })),
    )
    const whole = (disks?.devices ?? []).filter(({ name }) => !/^(loop|ram|dm-)/.test(name) && !/\dp?\d+$|^[sv]d[a-z]+\d+$/.test(name))
    state.disks = rates(
      'disk',
      whole.map((one) => ({ name: one.name, inward: one.readSectors * sector, outward: one.writeSectors * sector })),
    )
    const spent = new Map((processes?.processes ?? []).map(({ pid, cpuTime }) => [pid, cpuTime]))
    state.processes = (processes?.processes ?? [])
      .map((one): ProcessLine => {
        const last = before?.spent.get(one.pid) ?? one.cpuTime
        return {
          pid: one.pid,
          name: one.args || one.executable || one.command,
          state: one.state,
          threads: one.threads,
          cpu: Math.max(0, ((one.cpuTime - last) / seconds) * 100),
          memory: one.residentMemory,
        }
      })
      .sort((a, b) => b.cpu - a.cpu || b.memory - a.memory)
    this.#before = { at, busy, all, moved, spent }
  }
}

/** Keeps the newest of a list. */
function push<T>(list: T[], item: T, most: number): void {
  list.push(item)
  if (list.length > most) list.splice(0, list.length - most)
}

async function withRetries(signal: AbortSignal, act: () => Promise<void>): Promise<void> {
  while (!signal.aborted) {
    await act().catch(() => {})
    await pause(again, signal)
  }
}

/** The time of day in an event's id (xid: its first 4 bytes are seconds). */
export function timeOf(id: string): string {
  const alphabet = '0123456789abcdefghijklmnopqrstuv'
  // Seven characters are 35 bits: those of the seconds and three more.
  let bits = 0
  for (const character of id.slice(0, 7)) bits = bits * 32 + Math.max(0, alphabet.indexOf(character))
  return new Date(Math.floor(bits / 8) * 1000).toISOString().slice(11, 19)
}
