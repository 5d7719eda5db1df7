/** How a component of a node is changed, and how it is proven to run with its image. */
import { core, type KubeClient } from '../../../kube/client.ts'
import { drain } from '../../../kube/drain.ts'
import { isReady } from '../../../kube/pod.ts'
import type { machine } from '../../../rpc/messages.ts'
import type { Cluster } from '../cluster.ts'
import { failedWith } from '../failure.ts'
import type { Io } from '../io.ts'
import { applyConfig, checkHealthy, readConfig, resourceOf } from '../machine/machine.ts'
import { Final, within } from '../machine/within.ts'
import { specOf } from '../resource/definition.ts'
import { type ComponentName, components } from './components.ts'
import type { UpgradedNode } from './nodes.ts'
import type { Step, StepOperations } from './steps.ts'
import { versionOfImage, withoutDigest } from './versions.ts'

const callTimeout = 10_000

/** Marks a node that an upgrade cordoned, so that a later run of it lets pods come again. */
const cordonMark = 'ichor.dev/cordoned-by-upgrade-k8s'

/** What the steps work with. */
export interface StepContext {
  readonly io: Io
  readonly cluster: Cluster
  readonly kubernetes: KubeClient
  /** Milliseconds in which a component must be healthy. */
  readonly timeout: number
  /** Milliseconds for the pods of a node to leave before its kubelet is changed; they stay without it. */
  readonly drainTimeout?: number | undefined
  report(line: string): void
}

/** The operations on real nodes. */
export function nodeOperations(context: StepContext): StepOperations {
  const { io, cluster, timeout, report } = context
  /** Node → the last event of its kubelet before the change. */
  const before = new Map<string, string>()
  return {
    report,
    async read({ node, component }) {
      const config = await within(io, timeout, `read the configuration of ${node.name}`, () => readConfig(cluster, node.address))
      return { config, running: await runningImage(cluster, node, component) }
    },
    async apply({ node, component }, config) {
      if (component === 'kubelet') {
        if (context.drainTimeout !== undefined) await drainNode(context, node, context.drainTimeout)
        before.set(node.address, await lastEvent(cluster, node.address))
      }
      await applyConfig(io, cluster, node.address, config)
    },
    async prove(step) {
      if (step.component === 'kube-proxy') return
      await within(io, timeout, `${step.component} of ${step.node.name} is healthy with ${step.running}`, () =>
        step.component === 'kubelet'
          ? checkKubelet(context, step, before.get(step.node.address))
          : checkStaticPod(context, step, step.component),
      )
      if (step.component === 'kubelet') await readmit(context, step.node)
    },
  }
}

/** The image in effect; undefined on a node that does not run the component. */
export async function runningImage(cluster: Cluster, { address }: UpgradedNode, component: ComponentName): Promise<string | undefined> {
  const { namespace, type, id, key } = components[component].resource
  try {
    const spec = await resourceOf<Record<string, unknown>>(cluster, address, namespace, type, id)
    return typeof spec[key] === 'string' ? spec[key] : undefined
  } catch (error) {
    if (failedWith(error, 'NotFound')) return undefined
    throw error
  }
}

/** Throws unless the node uses the image, and Final when it went back to the one before because it did not start. */
async function checkImage({ cluster }: StepContext, step: Step): Promise<string> {
  const { namespace, type, id, key } = components[step.component].resource
  const { resource } = await cluster.unary(
    'cosi.resource.State/Get',
    { namespace, type, id },
    { node: step.node.address, timeout: callTimeout },
  )
  if (!resource) throw new Error(`there is no ${type}/${id}`)
  const image = String((specOf(resource) as Record<string, unknown> | undefined)?.[key])
  if (withoutDigest(image) !== withoutDigest(step.running)) {
    const rejected = await rejection(cluster, step)
    if (rejected !== undefined) throw new Final(`the node went back to ${image}: ${rejected}`)
    throw new Error(`the node still uses ${image}`)
  }
  return resource.metadata?.version ?? ''
}

/** Why a node rejected the settings of a component. Nodes of other systems have no such type, and permit nobody to read it. */
async function rejection(cluster: Cluster, { node, component }: Step): Promise<string | undefined> {
  try {
    const type = 'ComponentFallbacks.k8s.ichor.dev'
    const { changed, error } = await resourceOf<{ changed: string[]; error: string }>(cluster, node.address, 'k8s', type, component)
    return `${changed.join(', ')} did not start${error ? `: ${error}` : ''}`
  } catch (error) {
    if (failedWith(error, 'NotFound') || failedWith(error, 'PermissionDenied')) return undefined
    throw error
  }
}

async function checkStaticPod(context: StepContext, step: Step, component: ComponentName): Promise<void> {
  const version = await checkImage(context, step)
  const query = { namespace: 'kube-system', labelSelector: `k8s-app=${component}`, fieldSelector: `spec.nodeName=${step.node.name}` }
  const { items } = await context.kubernetes.list(core.pod, query, { timeout: callTimeout })
  const current = items.find(({ metadata }) => metadata.annotations?.['talos.dev/config-version'] === version)
  if (!current) throw new Error(items.length > 0 ? 'its pod has not started with the new image yet' : 'its pod is not there yet')
  if (!isReady(current.status)) throw new Error('its pod is not ready')
}

async function checkKubelet(context: StepContext, step: Step, before: string | undefined): Promise<void> {
  const { cluster, kubernetes } = context
  const { address, name } = step.node
  await checkImage(context, step)
  await checkHealthy(cluster, address, 'kubelet')
  if (before !== undefined && (await lastEvent(cluster, address)) === before) throw new Error('the kubelet has not started again yet')
  const { status } = await kubernetes.get(core.node, name, undefined, { timeout: callTimeout })
  const expected = versionOfImage(step.running)
  const { kubeletVersion } = (status as { nodeInfo?: { kubeletVersion?: string } } | undefined)?.nodeInfo ?? {}
  if (expected && kubeletVersion !== `v${expected.text}`) throw new Error(`the Node reports the kubelet as ${kubeletVersion}`)
  if (!isReady(status)) throw new Error('the Node is not ready')
}

/** The time of the last event of the kubelet's service. */
async function lastEvent(cluster: Cluster, node: string): Promise<string> {
  const lists = await cluster.ask('machine.MachineService/ServiceList', {}, { node, timeout: callTimeout })
  const services: machine.ServiceInfo[] = lists.flatMap(({ services }) => services)
  const { ts } = services.find(({ id }) => id === 'kubelet')?.events?.events.at(-1) ?? {}
  return ts ? `${ts.seconds}.${ts.nanos}` : ''
}

async function drainNode({ io, kubernetes, report }: StepContext, { name }: UpgradedNode, timeout: number): Promise<void> {
  await drain(kubernetes, name, {
    timeout,
    signal: io.signal,
    annotations: { [cordonMark]: 'true' },
    report: (state) => report(`draining ${name}: ${state}`),
  })
}

/** Lets pods come again to a node that this upgrade cordoned, also in a run before. */
async function readmit({ io, kubernetes, timeout }: StepContext, { name }: UpgradedNode): Promise<void> {
  await within(io, timeout, `uncordon ${name}`, async () => {
    const { metadata } = await kubernetes.get(core.node, name, undefined, { timeout: callTimeout })
    if (metadata.annotations?.[cordonMark] === undefined) return
    const body = { metadata: { annotations: { [cordonMark]: null } }, spec: { unschedulable: null } }
    await kubernetes.patch(core.node, name, undefined, { type: 'application/merge-patch+json', body })
  })
}
