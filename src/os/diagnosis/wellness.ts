/** The health that resources report themselves: which of them have a problem, its description, and what it depends on. */
import type { AnyResourceType, Resource, ResourceType } from '../../cosi/resource.ts'
import { lastWords } from '../../supervise/last-words.ts'
import { NodeStatus } from '../k8s/resources/node.ts'
import { StaticPodStatus } from '../k8s/resources/static-pod.ts'
import { NetworkStatus } from '../network/resources/network-status.ts'
import { MachineStatus } from '../runtime/resources/machine-status.ts'
import { Service } from '../runtime/resources/service.ts'
import { TimeStatus } from '../time/resources/time-status.ts'

/** A resource to examine next. */
export interface Target {
  readonly type: AnyResourceType
  readonly namespace?: string | undefined
  readonly id: string
}

/** One problem of a resource. */
export interface Complaint {
  readonly sentence: string
  readonly error?: string | undefined
  readonly times?: number
  readonly behind: readonly Target[]
}

type Judge<S> = (spec: S, id: string) => Complaint[]

const complaint = (sentence: string, behind: readonly Target[] = [], rest: Partial<Complaint> = {}): Complaint => ({
  sentence,
  behind,
  ...rest,
})

const judged = <S>({ type }: ResourceType<S>, judge: Judge<S>): [string, Judge<unknown>] => [type, (spec, id) => judge(spec as S, id)]

const judges = new Map<string, Judge<unknown>>([
  judged(TimeStatus, ({ synced }) => (synced ? [] : [complaint('the clock is not in step with a time server yet')])),
  judged(NetworkStatus, (spec) =>
    (
      [
        ['addressReady', 'no routed address is set'],
        ['connectivityReady', 'there is no default route, or a probe fails'],
        ['hostnameReady', 'there is no host name'],
        ['etcFilesReady', 'the files of the network (/etc/hosts, /etc/resolv.conf) are not written'],
      ] as const
    )
      .filter(([key]) => !spec[key])
      .map(([, sentence]) => complaint(sentence)),
  ),
  judged(NodeStatus, ({ nodeReady }, id) =>
    nodeReady ? [] : [complaint(`Kubernetes reports that node "${id}" is not ready`, [service('kubelet')])],
  ),
  judged(Service, ({ running, healthy, unknown }, id) =>
    running && (healthy || unknown) ? [] : [complaint(`service "${id}" is not healthy`)],
  ),
  judged(StaticPodStatus, (status, id) => podComplaints(status as PodStatus, id).map((one) => ({ ...one, behind: neededBy(id) }))),
  judged(MachineStatus, ({ status, stage }) =>
    status.ready
      ? []
      : status.unmetConditions.map((unmet, at) => machineComplaint(unmet, at === 0 ? `it is ${stage} and not ready: ` : '')),
  ),
])

/** The problems that a resource reports; nothing when it is healthy or does not report its health. */
export function complaintsOf({ metadata, spec }: Resource): Complaint[] {
  const judge = judges.get(metadata.type)
  if (judge) return judge(spec, metadata.id)
  const fields = spec as Record<string, unknown> | null
  if (typeof fields !== 'object' || fields === null) return []
  return ['ready', 'healthy', 'synced']
    .filter((key) => fields[key] === false)
    .map((key) =>
      complaint(`it reports "${key}: false"${typeof fields.lastError === 'string' && fields.lastError ? `: ${fields.lastError}` : ''}`),
    )
}

/** A service, named as a resource. */
export const service = (id: string): Target => ({ type: Service, id })

/** What a pod of the control plane depends on: its node's API server and etcd, whose failure the others may notice first. */
function neededBy(id: string): Target[] {
  const [, component, node] = /^kube-system\/kube-(apiserver|controller-manager|scheduler)-(.+)$/.exec(id) ?? []
  if (component === undefined) return []
  return [service('etcd'), ...(component === 'apiserver' ? [] : [{ type: StaticPodStatus, id: `kube-system/kube-apiserver-${node}` }])]
}

interface Unmet {
  name: string
  reason: string
}

function machineComplaint({ name, reason }: Unmet, before: string): Complaint {
  const sentence = `${before}${reason}`
  switch (name) {
    case 'time':
      return complaint(sentence, [{ type: TimeStatus, id: 'node' }])
    case 'network':
      return complaint(sentence, [{ type: NetworkStatus, id: 'status' }])
    case 'services':
      return complaint(
        sentence,
        reason.split(', ').map((part) => service(part.split(' ')[0] ?? '')),
      )
    case 'nodeReady':
      return complaint(sentence, [{ type: NodeStatus, id: /"([^"]+)"/.exec(reason)?.[1] ?? '' }])
    case 'staticPods':
      return complaint(
        sentence,
        reason.split(', ').map((part) => ({ type: StaticPodStatus, id: part.replace(/ not ready$/, '') })),
      )
    default:
      return complaint(sentence)
  }
}

interface ContainerStatus {
  name: string
  ready?: boolean
  restartCount?: number
  state?: { waiting?: Reason; terminated?: Terminated }
  lastState?: { terminated?: Terminated }
}

interface Reason {
  reason?: string
  message?: string
}

interface Terminated extends Reason {
  exitCode?: number
}

interface PodStatus {
  phase?: string
  reason?: string
  message?: string
  conditions?: { type: string; status: string; reason?: string; message?: string }[]
  containerStatuses?: ContainerStatus[]
  initContainerStatuses?: ContainerStatus[]
}

/** Each container that keeps a pod from being ready, with the kubelet's message or its own last output. */
function podComplaints(status: PodStatus, id: string): Complaint[] {
  const ready = status.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True')
  if (ready) return []
  const containers = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])]
  const waiting = containers
    .filter((one) => !one.ready && (one.state?.waiting || one.state?.terminated || one.lastState?.terminated))
    .map(containerComplaint)
  if (waiting.length > 0) return waiting
  const { message, reason } = status.conditions?.find(({ status: value, message: text }) => value === 'False' && text) ?? status
  return [complaint(`pod "${id}" is not ready`, [], { error: message ?? reason })]
}

function containerComplaint({ name, state = {}, lastState = {}, restartCount = 0 }: ContainerStatus): Complaint {
  const end = state.terminated ?? lastState.terminated
  const { reason = '', message } = state.waiting ?? {}
  const times = restartCount > 0 ? { times: restartCount } : {}
  if (end) {
    const how = end.exitCode === undefined ? 'ends' : `ends with exit code ${end.exitCode}`
    const error = lastWords(end.message ?? '') || (end.reason && end.reason !== 'Error' ? end.reason : message)
    return complaint(`container "${name}" is started and ${how}`, [], { error, ...times })
  }
  const why = /^(ErrImagePull|ImagePullBackOff|InvalidImageName|ErrImageNeverPull)$/.test(reason)
    ? `the image of container "${name}" cannot be pulled`
    : `container "${name}" is not started yet (${reason})`
  return complaint(why, [], { error: message, ...times })
}
