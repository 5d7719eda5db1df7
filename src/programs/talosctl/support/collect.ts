/** What a support bundle holds of a node: for each file a way to get its text. Nothing here may change the node. */
import { common } from '../../../rpc/enums.ts'
import type { Cluster } from '../cluster.ts'
import { eventsOf } from '../event.ts'
import { definitions } from '../resource/definition.ts'
import { toYaml } from '../resource/view.ts'

/** One file of the bundle. */
export interface Source {
  readonly name: string
  get(): Promise<string>
}

const timeout = 60_000
const logLines = 5000
const mostBytes = 32 << 20
const { ContainerDriver } = common

/** The sources to fetch from one node; its services, containers and resource types are listed first. A list that fails is a failed source. */
export async function nodeSources(cluster: Cluster, node: string, signal: AbortSignal): Promise<Source[]> {
  const options = { node, timeout, signal }
  const json = (path: Parameters<Cluster['ask']>[0]) => async () =>
    `${JSON.stringify(await cluster.ask(path, {} as never, options), plain, 2)}\n`
  const lists = await Promise.all([
    listed('services', () => serviceSources(cluster, options)),
    listed('containers', () => containerSources(cluster, options)),
    listed('resources', () => resourceSources(cluster, node, options)),
  ])
  return [
    { name: 'version.json', get: json('machine.MachineService/Version') },
    { name: 'services.json', get: json('machine.MachineService/ServiceList') },
    { name: 'processes.json', get: json('machine.MachineService/Processes') },
    { name: 'memory.json', get: json('machine.MachineService/Memory') },
    { name: 'mounts.json', get: json('machine.MachineService/Mounts') },
    { name: 'load.json', get: json('machine.MachineService/LoadAvg') },
    { name: 'cpu.json', get: json('machine.MachineService/SystemStat') },
    { name: 'disks.json', get: json('machine.MachineService/DiskStats') },
    { name: 'network.json', get: json('machine.MachineService/NetworkDeviceStats') },
    { name: 'time.json', get: json('time.TimeService/Time') },
    {
      name: 'netstat.json',
      get: async () => {
        const feature = { pid: true }
        const l4proto = { tcp: true, tcp6: true, udp: true, udp6: true }
        return `${JSON.stringify(await cluster.ask('machine.MachineService/Netstat', { feature, l4proto }, options), plain, 2)}\n`
      },
    },
    { name: 'controllers.json', get: json('inspect.InspectService/ControllerRuntimeDependencies') },
    {
      name: 'metrics.txt',
      get: async () => (await cluster.ask('ichor.v1.MetricsService/Metrics', {}, options)).map(({ text }) => text).join(''),
    },
    {
      name: 'explain.json',
      get: json('ichor.v1.ExplainService/Explain'),
    },
    { name: 'dmesg.log', get: () => text(cluster.stream('machine.MachineService/Dmesg', {}, options)) },
    { name: 'events.json', get: () => events(cluster, options) },
    ...lists.flat(),
  ]
}

type Options = { node: string; timeout: number; signal: AbortSignal }

async function listed(name: string, list: () => Promise<Source[]>): Promise<Source[]> {
  try {
    return await list()
  } catch (error) {
    return [{ name, get: () => Promise.reject(error) }]
  }
}

async function serviceSources(cluster: Cluster, options: Options): Promise<Source[]> {
  const messages = await cluster.ask('machine.MachineService/LogsContainers', {}, options)
  return messages
    .flatMap(({ ids }) => ids)
    .map((id) => ({
      name: `service-logs/${fileName(id)}.log`,
      get: () => text(cluster.stream('machine.MachineService/Logs', { id, tailLines: -1 }, options)),
    }))
}

async function containerSources(cluster: Cluster, options: Options): Promise<Source[]> {
  const scope = { namespace: 'k8s.io', driver: ContainerDriver.CRI }
  const messages = await cluster.ask('machine.MachineService/Containers', scope, options)
  const containers = messages.flatMap((message) => message.containers)
  return [
    { name: 'containers.json', get: async () => `${JSON.stringify(messages, plain, 2)}\n` },
    // A sandbox has no log of its own; logs of other namespaces may contain confidential data of their owners.
    ...containers
      .filter(({ id, podId }) => id !== podId && id.startsWith('kube-system/'))
      .map(({ id }) => ({
        name: `kubernetes-logs/${fileName(id)}.log`,
        get: () => text(cluster.stream('machine.MachineService/Logs', { ...scope, id, tailLines: logLines }, options)),
      })),
  ]
}

async function resourceSources(cluster: Cluster, node: string, options: Options): Promise<Source[]> {
  const known = await definitions(cluster, node)
  return known
    .filter(({ sensitive, type }) => !sensitive || type === 'MachineConfigs.config.talos.dev')
    .map(({ id, type, defaultNamespace: namespace }) => ({
      name: `resources/${fileName(id)}.yaml`,
      get: async () => {
        const found: string[] = []
        for await (const { resource } of cluster.stream('cosi.resource.State/List', { namespace, type }, options))
          if (resource) found.push(toYaml(resource, node))
        return found.join('---\n')
      },
    }))
}

/** Events that are kept; the stream goes on, so it is left when nothing has come for a while. */
async function events(cluster: Cluster, { node, signal }: Options): Promise<string> {
  const over = new AbortController()
  const found: unknown[] = []
  const idle = 500
  let timer = setTimeout(() => over.abort(), 5000)
  try {
    const both = AbortSignal.any([signal, over.signal])
    for await (const { data, ...event } of eventsOf(cluster, { tailEvents: -1 }, { node, signal: both })) {
      found.push({ ...event, type: data?.type_url, data: Buffer.from(data?.value ?? []).toString('base64') })
      clearTimeout(timer)
      timer = setTimeout(() => over.abort(), idle)
    }
  } catch (error) {
    if (!over.signal.aborted) throw error
  } finally {
    clearTimeout(timer)
  }
  return `${JSON.stringify(found, plain, 2)}\n`
}

async function text(chunks: AsyncIterable<{ bytes: Uint8Array }>): Promise<string> {
  const parts: Uint8Array[] = []
  let size = 0
  for await (const { bytes } of chunks) {
    parts.push(bytes)
    size += bytes.length
    if (size > mostBytes) {
      parts.push(Buffer.from(`\n[cut off after ${size} bytes]\n`))
      break
    }
  }
  return Buffer.concat(parts).toString('utf8')
}

function fileName(id: string): string {
  return id.replace(/[^\w.-]+/g, '_').slice(0, 150)
}

function plain(_: string, value: unknown): unknown {
  return value instanceof Uint8Array ? Buffer.from(value).toString('base64') : value
}
