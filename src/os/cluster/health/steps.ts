/** The definition of a healthy cluster: sixteen checks in order. A failed check throws the reason. */

import { core, type KubeClient } from '../../../kube/client.ts'
import type { KubeObject } from '../../../kube/object.ts'
import { conditionsOf, hasEnded, isReady as reportsReady } from '../../../kube/pod.ts'
import type { machine } from '../../../rpc/messages.ts'
import { hostPortOfUrl } from '../../../wire/host-port.ts'
import { addressOnly } from '../../../wire/prefix.ts'
import { parseConfig } from '../../config/public.ts'
import { optionalComponents } from '../../k8s/resources/optional-components.ts'
import { type ClusterView, everyone } from './view.ts'

/** One check. */
export interface HealthStep {
  readonly name: string
  /** It holds only where pods can run: nodes are ready, and a pod network is there. */
  readonly needsReadyNodes?: true
  /** Resolves when it holds, to 'skip' when it does not apply; throws the reason otherwise. */
  check(view: ClusterView): Promise<'skip' | undefined>
}

const mebibyte = 1024 * 1024
const reserve = 150 * mebibyte
/** The least memory and disk of a machine, with an allowance for what firmware and kernel keep to themselves. */
const minimum = { controlPlane: 1848 * mebibyte - reserve, worker: 1024 * mebibyte - reserve, disk: 6 * 1024 * mebibyte }

/** All checks, in order. */
export function healthSteps(): HealthStep[] {
  return [
    { name: 'etcd to be healthy', check: (view) => serviceRuns(view, view.controlPlanes, 'etcd') },
    { name: 'etcd members to be consistent across nodes', check: sameMembers },
    { name: 'etcd members to be control plane nodes', check: membersAreControlPlanes },
    { name: 'apid to be ready', check: (view) => serviceRuns(view, everyone(view), 'apid') },
    { name: 'all nodes memory sizes', check: memorySizes },
    { name: 'all nodes disk sizes', check: diskSizes },
    { name: 'no diagnostics', check: noDiagnostics },
    { name: 'kubelet to be healthy', check: (view) => serviceRuns(view, everyone(view), 'kubelet') },
    { name: 'all nodes to finish boot sequence', check: booted },
    { name: 'all k8s nodes to report', check: async (view) => void (await registered(view)) },
    { name: 'all control plane static pods to be running', check: (view) => staticPods(view, isRunning, 'is not running') },
    { name: 'all control plane components to be ready', check: (view) => staticPods(view, isReady, 'is not ready') },
    { name: 'all k8s nodes to report ready', needsReadyNodes: true, check: nodesReady },
    {
      name: 'kube-proxy to report ready',
      needsReadyNodes: true,
      check: (view) => podsReady(view, 'k8s-app=kube-proxy', 'kube-proxy', core.daemonSet),
    },
    { name: 'coredns to report ready', needsReadyNodes: true, check: coreDNSReady },
    { name: 'all k8s nodes to report schedulable', check: schedulable },
  ]
}

async function serviceRuns(view: ClusterView, addresses: readonly string[], id: string): Promise<undefined> {
  await eachMachine(addresses, async (address) => {
    const service = (await view.machine(address).services()).find((one) => one.id === id)
    if (!service) throw new Error(`${address}: service "${id}" not found`)
    if (service.state !== 'Running')
      throw new Error(`${address}: service "${id}" not in expected state "Running": current state [${service.state}] ${lastEvent(service)}`)
    if (service.health?.unknown || !service.health?.healthy) {
      throw new Error(`${address}: service "${id}" is not healthy${service.health?.lastMessage ? `: ${service.health.lastMessage}` : ''}`)
    }
  })
}

function lastEvent({ events }: machine.ServiceInfo): string {
  return events?.events.at(-1)?.msg ?? ''
}

async function sameMembers(view: ClusterView): Promise<undefined> {
  const lists = await Promise.all(
    view.controlPlanes.map(async (address) => [address, memberNames(await view.machine(address).etcdMembers())] as const),
  )
  const [[first, expected] = ['', '']] = lists
  for (const [address, names] of lists) {
    if (names !== expected) throw new Error(`${address} lists the members ${names}, ${first} lists ${expected}`)
  }
}

function memberNames(members: readonly machine.EtcdMember[]): string {
  return members
    .map(({ hostname, isLearner }) => (isLearner ? `${hostname} (learner)` : hostname))
    .toSorted()
    .join(', ')
}

async function membersAreControlPlanes(view: ClusterView): Promise<undefined> {
  const [first] = view.controlPlanes
  if (first === undefined) throw new Error('no control plane node is known')
  const members = await view.machine(first).etcdMembers()
  const controlPlanes = await allAddresses(view, view.controlPlanes)
  const isAt = (member: machine.EtcdMember, addresses: ReadonlySet<string>) => member.peerUrls.some((url) => addresses.has(hostOf(url)))
  for (const member of members) {
    const { hostname, peerUrls, isLearner } = member
    if (![...controlPlanes.values()].some((addresses) => isAt(member, addresses)))
      throw new Error(`etcd member "${hostname}" (${peerUrls.join(', ')}) is not a control plane node`)
    if (isLearner) throw new Error(`etcd member "${hostname}" is still a learner`)
  }
  const missing = [...controlPlanes].filter(([, addresses]) => !members.some((member) => isAt(member, addresses)))
  if (missing.length > 0) throw new Error(`${missing.map(([address]) => address).join(', ')} not in etcd yet`)
}

/** All addresses that each machine reports, with the one used to reach it: etcd and Kubernetes may use another network. */
async function allAddresses(view: ClusterView, machines: readonly string[]): Promise<Map<string, ReadonlySet<string>>> {
  const reported = await Promise.all(
    machines.map(async (address) => {
      const found = await view.machine(address).resources('network', 'NodeAddresses.net.talos.dev')
      const { addresses = [] } = (found.get('current-no-k8s') ?? found.get('current') ?? {}) as { addresses?: string[] }
      return [address, new Set([address, ...addresses.map(addressOnly)])] as const
    }),
  )
  return new Map(reported)
}

const hostOf = (url: string): string => hostPortOfUrl(url)?.host ?? ''

async function memorySizes(view: ClusterView): Promise<undefined> {
  await eachMachine(everyone(view), async (address) => {
    const wanted = view.controlPlanes.includes(address) ? minimum.controlPlane : minimum.worker
    const size = await view.machine(address).memory()
    if (size < wanted) throw new Error(`${address}: memory is ${mebibytes(size)}, want at least ${mebibytes(wanted)}`)
  })
}

async function diskSizes(view: ClusterView): Promise<undefined> {
  await eachMachine(everyone(view), async (address) => {
    const size = (await view.machine(address).mounts()).find(({ mountedOn }) => mountedOn === '/var')?.size
    if (size !== undefined && size < minimum.disk - 2 * 1024 * mebibyte) {
      throw new Error(`${address}: disk of /var is ${mebibytes(size)}, want a disk of at least ${mebibytes(minimum.disk)}`)
    }
  })
}

function mebibytes(bytes: number): string {
  return `${Math.floor(bytes / mebibyte)} MiB`
}

async function noDiagnostics(view: ClusterView): Promise<undefined> {
  await eachMachine(everyone(view), async (address) => {
    const found = await view.machine(address).resources('runtime', 'Diagnostics.runtime.talos.dev')
    for (const [id, spec] of found) throw new Error(`${address}: ${id}: ${(spec as { message?: string } | undefined)?.message ?? ''}`)
  })
}

async function booted(view: ClusterView): Promise<undefined> {
  await eachMachine(everyone(view), async (address) => {
    const status = (await view.machine(address).resources('runtime', 'MachineStatuses.runtime.talos.dev')).get('machine')
    const { stage } = (status ?? {}) as { stage?: string }
    if (stage !== 'running') throw new Error(`${address}: stage is "${stage ?? 'unknown'}", want "running"`)
  })
}

/** The Node of each machine. Throws when one is missing, or when one belongs to no machine. */
async function registered(view: ClusterView): Promise<KubeObject[]> {
  const { items } = await (await view.kubernetes()).list(core.node)
  const wanted = await allAddresses(view, everyone(view))
  const isOf = (node: KubeObject, addresses: ReadonlySet<string>) => addressesOf(node).some((address) => addresses.has(address))
  const missing = [...wanted].filter(([, addresses]) => !items.some((node) => isOf(node, addresses)))
  if (missing.length > 0)
    throw new Error(
      `${missing.map(([address]) => address).join(', ')} not in Kubernetes yet: it knows ${items.map(nameOf).join(', ') || 'no node'}`,
    )
  const foreign = items.filter((node) => ![...wanted.values()].some((addresses) => isOf(node, addresses)))
  if (foreign.length > 0) throw new Error(`Kubernetes has nodes that are not of this cluster: ${foreign.map(nameOf).join(', ')}`)
  return items
}

/** Components of the control plane, and the reports of a machine about those that its configuration may disable. */
const components = [{ name: 'kube-apiserver' }, ...optionalComponents] as const
type Component = (typeof components)[number]

async function isDisabled(view: ClusterView, address: string, component: Component): Promise<boolean> {
  if (!('config' in component)) return false
  const { namespace, type } = component.config
  const found = (await view.machine(address).resources(namespace, type)).get(component.name)
  return (found as { enabled?: boolean } | undefined)?.enabled === false
}

async function staticPods(view: ClusterView, holds: (pod: KubeObject) => boolean, otherwise: string): Promise<undefined> {
  const kubernetes = await view.kubernetes()
  const nodes = await registered(view)
  const { items } = await kubernetes.list(core.pod, { namespace: 'kube-system', labelSelector: 'tier=control-plane' })
  for (const [address, own] of await allAddresses(view, view.controlPlanes)) {
    const node = nodes.find((one) => addressesOf(one).some((each) => own.has(each)))
    if (!node) throw new Error(`${address} not in Kubernetes yet`)
    for (const component of components) {
      if (await isDisabled(view, address, component)) continue
      const pod = items.find((one) => one.metadata.name === `${component.name}-${nameOf(node)}`)
      if (!pod) throw new Error(`static pod "${component.name}" of ${nameOf(node)} is not there yet`)
      if (!holds(pod)) throw new Error(`static pod "${nameOf(pod)}" ${otherwise}`)
    }
  }
}

/** Which components run on no control plane of this cluster although its pods need them, as part of a sentence. */
async function disabledEverywhere(view: ClusterView): Promise<string> {
  const { controlPlanes } = view
  const missing = await Promise.all(
    components.map(async (component) => {
      const disabled = await Promise.all(controlPlanes.map((address) => isDisabled(view, address, component)))
      return 'key' in component && disabled.every(Boolean) ? `${component.name} runs on no control plane (${component.key})` : ''
    }),
  )
  return missing.filter(Boolean).join(', ')
}

async function nodesReady(view: ClusterView): Promise<'skip' | undefined> {
  if (await withoutNetwork(view)) return 'skip'
  for (const node of await registered(view)) {
    const ready = conditionsOf(node.status).find(({ type }) => type === 'Ready')
    if (ready?.status !== 'True') throw new Error(`${nameOf(node)} is not ready${ready?.message ? `: ${ready.message}` : ''}`)
  }
}

async function coreDNSReady(view: ClusterView): Promise<'skip' | undefined> {
  if (await withoutNetwork(view)) return 'skip'
  return podsReady(view, 'k8s-app=kube-dns', 'coredns', core.deployment)
}

async function podsReady(
  view: ClusterView,
  labelSelector: string,
  name: string,
  owner: typeof core.deployment | typeof core.daemonSet,
): Promise<'skip' | undefined> {
  const kubernetes = await view.kubernetes()
  const owners = await kubernetes.list(owner, { namespace: 'kube-system', labelSelector })
  const [first] = owners.items
  if (!first) return 'skip'
  const wanted = await replicas(kubernetes, first)
  const { items } = await kubernetes.list(core.pod, { namespace: 'kube-system', labelSelector })
  const pods = items.filter((pod) => !pod.metadata.deletionTimestamp && !hasEnded(pod))
  const waiting = pods.filter((pod) => !isReady(pod))
  if (waiting.length === 0 && pods.length >= wanted) return undefined
  const problem =
    waiting.length > 0
      ? `some pods are not ready: ${waiting.map(nameOf).join(', ')}`
      : `${pods.length} of ${wanted} pods of ${name} are there`
  const missing = await disabledEverywhere(view)
  throw new Error(missing ? `${problem}: ${missing}` : problem)
}

async function replicas(kubernetes: KubeClient, owner: KubeObject): Promise<number> {
  const { spec, status } = owner as unknown as { spec?: { replicas?: number }; status?: { desiredNumberScheduled?: number } }
  if (spec?.replicas !== undefined) return spec.replicas
  if (status?.desiredNumberScheduled) return status.desiredNumberScheduled
  return (await kubernetes.list(core.node)).items.length
}

async function schedulable(view: ClusterView): Promise<undefined> {
  const held = (await registered(view)).filter((node) => (node.spec as { unschedulable?: boolean } | undefined)?.unschedulable)
  if (held.length > 0) throw new Error(`some nodes are not schedulable: ${held.map(nameOf).join(', ')}`)
}

/** Whether the cluster has no pod network by configuration. An unreadable configuration counts as having one. */
async function withoutNetwork(view: ClusterView): Promise<boolean> {
  const [first] = view.controlPlanes
  if (first === undefined) return false
  try {
    const configs = await view.machine(first).resources('config', 'MachineConfigs.config.talos.dev')
    return parseConfig(String(configs.get('v1alpha1') ?? '')).v1alpha1?.cluster?.network?.cni?.name === 'none'
  } catch {
    return false
  }
}

async function eachMachine(addresses: readonly string[], check: (address: string) => Promise<void>): Promise<void> {
  const outcomes = await Promise.allSettled(addresses.map(check))
  for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason
}

function nameOf({ metadata }: KubeObject): string {
  return metadata.name ?? ''
}

function addressesOf({ status }: KubeObject): string[] {
  const { addresses = [] } = (status ?? {}) as { addresses?: { type: string; address: string }[] }
  return addresses.filter(({ type }) => type === 'InternalIP').map(({ address }) => address)
}

function isRunning({ status }: KubeObject): boolean {
  return (status as { phase?: string } | undefined)?.phase === 'Running'
}

function isReady(pod: KubeObject): boolean {
  return isRunning(pod) && reportsReady(pod.status)
}
