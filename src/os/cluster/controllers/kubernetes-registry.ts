import { systemClock } from '../../../cosi/clock.ts'
import { type Controller, defineController, shared, weak } from '../../../cosi/controller.ts'
import type { SpecOf } from '../../../cosi/resource.ts'
import { core, type KubeClient, kubeClient } from '../../../kube/client.ts'
import type { KubeObject } from '../../../kube/object.ts'
import type { KubeAccess } from '../../../kube/transport.ts'
import { contacts } from '../../contacts.ts'
import { NodeAnnotationSpec } from '../../k8s/resources/node.ts'
import { Nodename } from '../../k8s/resources/nodename.ts'
import { readAnnotations, writeAnnotations } from '../discovery/annotations.ts'
import { Affiliate } from '../resources/affiliate.ts'
import { DiscoveryConfig } from '../resources/discovery-config.ts'
import { Identity } from '../resources/identity.ts'

/** Retry delays in milliseconds: the first, doubling up to the last. */
const retryDelays = [500, 15_000] as const

/** Publishes this node as annotations of its Node in Kubernetes. */
export const pushToKubernetes: Controller = defineController({
  name: 'cluster.KubernetesPushController',
  effects: 'none',
  inputs: { config: weak(DiscoveryConfig, { id: 'cluster' }), identity: weak(Identity, { id: 'local' }) },
  outputs: { annotations: shared(NodeAnnotationSpec) },
  reconcile({ config, identity, annotations, also }) {
    const id = identity.get('local')?.spec.nodeId
    if (!config.get('cluster')?.spec.registryKubernetesEnabled || !id) return
    const spec = also(weak(Affiliate, { id })).get(id)?.spec
    if (!spec) return
    for (const [key, value] of Object.entries(writeAnnotations(spec))) annotations.put(key, { key, value })
  },
})

/** Reads the other affiliates from the annotations of their Nodes. `accessOf` returns the strongest access this node has, if any. */
export const pullFromKubernetes = (accessOf: () => KubeAccess | undefined, clientOf = kubeClient): Controller => {
  const nodes = new Map<string, SpecOf<typeof Affiliate>>()
  return defineController({
    name: 'cluster.KubernetesPullController',
    contacts: contacts.controlPlane,
    inputs: {
      config: weak(DiscoveryConfig, { id: 'cluster' }),
      identity: weak(Identity, { id: 'local' }),
      nodename: weak(Nodename, { id: 'nodename' }),
    },
    outputs: { raw: shared(Affiliate, 'cluster-raw') },
    reconcile({ config, identity, nodename, raw, background, wakeIn }) {
      const self = identity.get('local')?.spec.nodeId
      if (!config.get('cluster')?.spec.registryKubernetesEnabled || !self || !nodename.get('nodename')) {
        nodes.clear()
        return
      }
      const access = accessOf()
      // Access changes with the cluster's authority, and no resource announces it.
      wakeIn(retryDelays[1])
      if (!access) return
      background({ name: 'watch nodes', of: Bun.hash(JSON.stringify(access)).toString(36) }, async (signal, wake, report) => {
        const client = clientOf(access)
        await watchNodes(client, { nodes, wake, report }, signal).finally(() => client.close())
      })
      for (const spec of nodes.values()) if (spec.nodeId !== self) raw.put(`k8s/${spec.nodeId}`, spec)
    },
  })
}

interface Watching {
  readonly nodes: Map<string, SpecOf<typeof Affiliate>>
  wake(): void
  report(error?: unknown): void
}

/** Keeps the affiliates of all Nodes up to date, until the signal. */
async function watchNodes(client: KubeClient, { nodes, wake, report }: Watching, signal: AbortSignal): Promise<void> {
  let delay: number = retryDelays[0]
  /** Stores a Node's affiliate. Returns whether it changed: a kubelet updates its Node every few seconds. */
  const take = (node: KubeObject, gone = false): boolean => {
    const name = node.metadata.name ?? ''
    const spec = gone ? undefined : readAnnotations(node)
    if (Bun.deepEquals(spec, nodes.get(name))) return false
    if (spec) nodes.set(name, spec)
    else nodes.delete(name)
    return true
  }
  while (!signal.aborted) {
    try {
      const { items, resourceVersion } = await client.list(core.node, {}, { signal })
      nodes.clear()
      for (const node of items) take(node)
      wake()
      report()
      delay = retryDelays[0]
      for await (const { type, object } of client.watch(core.node, { resourceVersion }, { signal })) {
        if (type === 'BOOKMARK') continue
        if (take(object, type === 'DELETED')) wake()
      }
    } catch (error) {
      if (signal.aborted) return
      // Recent versions of Kubernetes show a worker no Node but its own: this is reported and retried.
      report(error)
    }
    await systemClock.sleep(delay, signal)
    delay = Math.min(delay * 2, retryDelays[1])
  }
}
