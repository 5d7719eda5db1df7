/** The health that resources report themselves: which of them have a problem, its description, and what it depends on. */
import type { AnyResourceType, Resource, ResourceType } from '../../cosi/resource.ts'
import type { PodStatus } from '../../kube/pod.ts'
import type { StoreView } from '../../supervise/definition.ts'
import { type ContainerProblem, type ContainerRun, podRun } from '../k8s/public.ts'
import { NodeStatus } from '../k8s/resources/node.ts'
import { optionalComponents } from '../k8s/resources/optional-components.ts'
import { StaticPod, StaticPodStatus } from '../k8s/resources/static-pod.ts'
import { NetworkStatus } from '../network/resources/network-status.ts'
import { unmetConditionsOf } from '../runtime/public.ts'
import { MachineStatus } from '../runtime/resources/machine-status.ts'
import { Service } from '../runtime/resources/service.ts'
import { SiderolinkStatus } from '../siderolink/resources/siderolink.ts'
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

type Judge<S> = (spec: S, id: string, store: StoreView) => Complaint[]

const complaint = (sentence: string, behind: readonly Target[] = [], rest: Partial<Complaint> = {}): Complaint => ({
  sentence,
  behind,
  ...rest,
})

const judged = <S>({ type }: ResourceType<S>, judge: Judge<S>): [string, Judge<unknown>] => [
  type,
  (spec, id, store) => judge(spec as S, id, store),
]

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
  judged(SiderolinkStatus, ({ connected, host, grpcTunnel }) =>
    connected
      ? []
      : [
          complaint(
            `the management server at ${host} was not heard lately: check the route to it${grpcTunnel ? '' : ', and that UDP reaches its WireGuard endpoint, or add grpc_tunnel=true to its URL'}`,
          ),
        ],
  ),
  judged(Service, ({ running, healthy, unknown }, id) =>
    running && (healthy || unknown) ? [] : [complaint(`service "${id}" is not healthy`)],
  ),
  judged(StaticPodStatus, (status, id) => podComplaints(status as PodStatus, id).map((one) => ({ ...one, behind: neededBy(id) }))),
  judged(MachineStatus, ({ status, stage }, _, store) =>
    status.ready
      ? []
      : unmetConditionsOf(store).map(({ reason, targets }, at) =>
          complaint(`${at === 0 ? `it is ${stage} and not ready: ` : ''}${reason}`, targets),
        ),
  ),
])

/** The problems that a resource reports; nothing when it is healthy or does not report its health. */
export function complaintsOf({ metadata, spec }: Resource, store: StoreView): Complaint[] {
  const judge = judges.get(metadata.type)
  if (judge) return judge(spec, metadata.id, store)
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

/** The component and node of a static pod of the control plane, which the kubelet names `kube-system/kube-<component>-<node>`. */
export function controlPlanePod(id: string): { component: string; node: string } | undefined {
  const [, component, node] = /^kube-system\/kube-(apiserver|controller-manager|scheduler)-(.+)$/.exec(id) ?? []
  return component !== undefined && node !== undefined ? { component, node } : undefined
}

/** The key of the configuration that disables a missing pod of the control plane; undefined when none does. */
export function disabledBy({ type, id }: { type: ResourceType; id: string }, store: StoreView): string | undefined {
  const name = type.type === StaticPod.type ? id : type.type === StaticPodStatus.type ? `kube-${controlPlanePod(id)?.component}` : ''
  const component = optionalComponents.find((one) => one.name === name)
  if (!component) return undefined
  const report = store.get<{ enabled?: boolean }>(component.config as AnyResourceType, name)
  return report?.spec.enabled === false ? component.key : undefined
}

/** What a pod of the control plane depends on: its node's API server and etcd, whose failure the others may notice first. */
function neededBy(id: string): Target[] {
  const pod = controlPlanePod(id)
  if (!pod) return []
  const { component, node } = pod
  return [service('etcd'), ...(component === 'apiserver' ? [] : [{ type: StaticPodStatus, id: `kube-system/kube-apiserver-${node}` }])]
}

/** Each container that keeps a pod from being ready, with the kubelet's message or its own last output. */
function podComplaints(status: PodStatus, id: string): Complaint[] {
  const { ready, containers } = podRun(status)
  if (ready) return []
  const failing = containers.flatMap((run) => (run.ready || !run.problem ? [] : [containerComplaint(run, run.problem)]))
  if (failing.length > 0) return failing
  const { message, reason } = status.conditions?.find(({ status: value, message: text }) => value === 'False' && text) ?? status
  return [complaint(`pod "${id}" is not ready`, [], { error: message ?? reason })]
}

function containerComplaint({ name, restarts, error }: ContainerRun, problem: ContainerProblem): Complaint {
  return complaint(problemText(name, problem), [], { ...(error && { error }), ...(restarts > 0 && { times: restarts }) })
}

function problemText(name: string, problem: ContainerProblem): string {
  switch (problem.kind) {
    case 'ended':
      return `container "${name}" is started and ${problem.exitCode === undefined ? 'ends' : `ends with exit code ${problem.exitCode}`}`
    case 'no-image':
      return `the image of container "${name}" cannot be pulled`
    case 'not-started':
      return `container "${name}" is not started yet (${problem.reason})`
  }
}
