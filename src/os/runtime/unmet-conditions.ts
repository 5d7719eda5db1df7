/** What keeps the machine from being ready, and which resources to look at for each condition. */
import type { Reader } from '../../cosi/controller.ts'
import type { AnyResourceType, ResourceType, SpecOf } from '../../cosi/resource.ts'
import { isReady } from '../../kube/pod.ts'
import type { StoreView } from '../../supervise/definition.ts'
import { MachineType } from '../config/resources/machine-type.ts'
import { NodeStatus } from '../k8s/resources/node.ts'
import { Nodename } from '../k8s/resources/nodename.ts'
import { StaticPodStatus } from '../k8s/resources/static-pod.ts'
import { NetworkStatus } from '../network/resources/network-status.ts'
import { TimeStatus } from '../time/resources/time-status.ts'
import { Service } from './resources/service.ts'

/** A condition that does not hold. Its name and reason are those of the API; the targets are for other code. */
export interface UnmetCondition {
  readonly name: 'time' | 'network' | 'services' | 'nodeReady' | 'staticPods'
  readonly reason: string
  /** The resources that do not hold, existing or not. */
  readonly targets: readonly { readonly type: AnyResourceType; readonly id: string }[]
}

/** The handles of the resources that the conditions are computed from. */
export interface ConditionReaders {
  readonly time: Reader<SpecOf<typeof TimeStatus>>
  readonly network: Reader<SpecOf<typeof NetworkStatus>>
  readonly services: Reader<SpecOf<typeof Service>>
  readonly pods: Reader<unknown>
  readonly machineType: Reader<SpecOf<typeof MachineType>>
  readonly nodename: Reader<SpecOf<typeof Nodename>>
  readonly node: Reader<SpecOf<typeof NodeStatus>>
}

/** The conditions that do not hold, from the handles of a round. */
export function unmetConditions({ time, network, services, pods, machineType, nodename, node }: ConditionReaders): UnmetCondition[] {
  const type = machineType.get('machine-type')?.spec
  return [
    ...(time.get('node')?.spec.synced ? [] : [unmet('time', 'time is not synced', TimeStatus, ['node'])]),
    ...unmetNetwork(network.get('status')?.spec),
    ...unmetServices(services, type),
    ...unmetNode(nodename.get('nodename')?.spec, node),
    ...(type === 'worker' ? [] : unmetPods(pods)),
  ]
}

/** The conditions that do not hold, from the store. */
export function unmetConditionsOf(store: StoreView): UnmetCondition[] {
  const reader = <S>(type: ResourceType<S>): Reader<S> => ({ get: (id) => store.get(type, id), list: () => store.list(type) })
  return unmetConditions({
    time: reader(TimeStatus),
    network: reader(NetworkStatus),
    services: reader(Service),
    pods: reader(StaticPodStatus),
    machineType: reader(MachineType),
    nodename: reader(Nodename),
    node: reader(NodeStatus),
  })
}

const unmet = (name: UnmetCondition['name'], reason: string, type: AnyResourceType, ids: readonly string[]): UnmetCondition => ({
  name,
  reason,
  targets: ids.map((id) => ({ type, id })),
})

function unmetNetwork(spec: SpecOf<typeof NetworkStatus> | undefined): UnmetCondition[] {
  if (!spec) return [unmet('network', 'no network status is available', NetworkStatus, ['status'])]
  const { addressReady, connectivityReady, hostnameReady, etcFilesReady } = spec
  const parts = { address: addressReady, connectivity: connectivityReady, hostname: hostnameReady, 'etc-files': etcFilesReady }
  const missing = Object.entries(parts).flatMap(([part, ready]) => (ready ? [] : [part]))
  return missing.length === 0 ? [] : [unmet('network', `waiting on: ${missing.join(', ')}`, NetworkStatus, ['status'])]
}

function unmetServices(services: Reader<SpecOf<typeof Service>>, type: SpecOf<typeof MachineType> | undefined): UnmetCondition[] {
  const required = type ? ['apid', 'machined', 'kubelet', 'cri', ...(type === 'worker' ? [] : ['etcd', 'trustd'])] : []
  const absent = required.filter((id) => !services.get(id)?.spec.running)
  const unhealthy = services
    .list()
    .filter(({ spec }) => spec.running && !spec.healthy && !spec.unknown)
    .map(({ metadata }) => metadata.id)
  const problems = [...absent.map((id) => `${id} not running`), ...unhealthy.map((id) => `${id} not healthy`)]
  return problems.length === 0 ? [] : [unmet('services', problems.join(', '), Service, [...absent, ...unhealthy])]
}

function unmetNode(name: SpecOf<typeof Nodename> | undefined, nodes: Reader<SpecOf<typeof NodeStatus>>): UnmetCondition[] {
  if (!name || name.skipNodeRegistration) return []
  const { nodename } = name
  const seen = nodes.get(nodename)?.spec
  if (seen?.nodeReady) return []
  return [
    unmet('nodeReady', seen ? `node "${nodename}" is not ready` : `node "${nodename}" status is not available yet`, NodeStatus, [nodename]),
  ]
}

function unmetPods(pods: Reader<unknown>): UnmetCondition[] {
  const unready = pods
    .list()
    .filter(({ spec }) => !isReady(spec))
    .map(({ metadata }) => metadata.id)
  return unready.length === 0 ? [] : [unmet('staticPods', unready.map((id) => `${id} not ready`).join(', '), StaticPodStatus, unready)]
}
