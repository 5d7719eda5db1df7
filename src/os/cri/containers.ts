/** The containers that a daemon runs, as the API lists them; pods are recognized by the kubelet's labels. */

import { basename } from 'node:path'
import type { Channel } from '../../rpc/client/channel.ts'
import { common, containerd as enums } from '../../rpc/enums.ts'
import type { containerd } from '../../rpc/messages.ts'
import { toMilliseconds } from '../../rpc/proto-time.ts'
import { criDaemon, systemDaemon } from './daemons.ts'

/** One container, or the sandbox of a pod. */
export interface ListedContainer {
  readonly namespace: string
  /** `apid`, `kube-system/pod` or `kube-system/pod:container:0123456789ab`. */
  readonly id: string
  /** containerd's own id. */
  readonly internalId: string
  readonly image: string
  readonly pid: number
  readonly status: string
  /** `kube-system/pod`; of a system container its id. */
  readonly podId: string
  /** The pod's uid. */
  readonly uid: string
  readonly name: string
  readonly cgroup: string
  /** `cni-…` of a sandbox with its own network namespace; empty for the containers in it and for pods on the host network. */
  readonly networkNamespace: string
  readonly created: number
}

type Container = containerd.services.containers.v1.Container
type Process = containerd.v1.types.Process
type Spec = { linux?: { cgroupsPath?: string; namespaces?: { type: string; path?: string }[] } }

const { RUNNING } = enums.v1.types.Status
const statusNames = Object.fromEntries(Object.entries(enums.v1.types.Status).map(([name, number]) => [number, name]))

/** Where a namespace's containers are: those of pods, or those of the system in both daemons. */
function channelsOf(namespace: string, driver: number): Channel[] {
  const pods = namespace === 'k8s.io' || (namespace === '' && driver === common.ContainerDriver.CRI)
  return pods ? [criDaemon.in('k8s.io')] : [systemDaemon.in('system'), criDaemon.in('system')]
}

/** All containers of a namespace; a daemon that does not run has none. */
export async function listContainers(namespace: string, driver: number): Promise<ListedContainer[]> {
  const name = namespace || (driver === common.ContainerDriver.CRI ? 'k8s.io' : 'system')
  const lists = await Promise.all(channelsOf(namespace, driver).map((channel) => listIn(channel, name).catch(unavailableIsNone)))
  return lists.flat()
}

function unavailableIsNone(error: unknown): ListedContainer[] {
  if ((error as { status?: string }).status === 'Unavailable') return []
  throw error
}

async function listIn(channel: Channel, namespace: string): Promise<ListedContainer[]> {
  const [{ containers }, { tasks }] = await Promise.all([
    channel.unary('containerd.services.containers.v1.Containers/List', {}),
    channel.unary('containerd.services.tasks.v1.Tasks/List', {}),
  ])
  const processes = new Map(tasks.map((task) => [task.id || task.containerId, task]))
  return containers.map((container) => listed(container, processes.get(container.id), namespace))
}

function listed(container: Container, task: Process | undefined, namespace: string): ListedContainer {
  const { labels } = container
  const spec = specOf(container)
  const running = task?.status === RUNNING
  const podName = labels['io.kubernetes.pod.name']
  const pod = podName && `${labels['io.kubernetes.pod.namespace']}/${podName}`
  const sandbox = labels['io.cri-containerd.kind'] === 'sandbox'
  const name = labels['io.kubernetes.container.name'] ?? (podName || container.id)
  return {
    namespace,
    id: !pod ? container.id : sandbox ? pod : `${pod}:${name}:${container.id.slice(0, 12)}`,
    internalId: container.id,
    image: container.image,
    pid: running ? task.pid : 0,
    status: !pod ? statusOfTask(task) : sandbox ? (running ? 'SANDBOX_READY' : 'SANDBOX_NOTREADY') : statusOfContainer(task),
    podId: pod ?? container.id,
    uid: labels['io.kubernetes.pod.uid'] ?? '',
    name,
    cgroup: spec.linux?.cgroupsPath ?? '',
    networkNamespace: sandbox ? basename(spec.linux?.namespaces?.find(({ type }) => type === 'network')?.path ?? '') : '',
    created: container.createdAt ? toMilliseconds(container.createdAt) : 0,
  }
}

function statusOfTask(task: Process | undefined): string {
  return task ? (statusNames[task.status] ?? 'UNKNOWN') : 'STOPPED'
}

function statusOfContainer(task: Process | undefined): string {
  if (!task) return 'CONTAINER_EXITED'
  const name = statusNames[task.status]
  return name === 'RUNNING' ? 'CONTAINER_RUNNING' : name === 'CREATED' ? 'CONTAINER_CREATED' : 'CONTAINER_EXITED'
}

function specOf({ spec }: Container): Spec {
  try {
    return spec ? (JSON.parse(Buffer.from(spec.value).toString()) as Spec) : {}
  } catch {
    return {}
  }
}
