import { systemClock } from '../../../cosi/clock.ts'
import { type Controller, defineController, shared, weak } from '../../../cosi/controller.ts'
import type { SpecOf } from '../../../cosi/resource.ts'
import { core, type KubeAccess, type KubeClient, kubeClient } from '../../../kube/client.ts'
import type { KubeObject } from '../../../kube/object.ts'
import { NodeAnnotationSpec } from '../../k8s/resources/node.ts'
import { Nodename } from '../../k8s/resources/nodename.ts'
import { readAnnotations, writeAnnotations } from '../discovery/annotations.ts'
import { Affiliate } from '../resources/affiliate.ts'
import { DiscoveryConfig } from '../resources/discovery-config.ts'
import { Identity } from '../resources/identity.ts'

/** Milliseconds between attempts, doubling up to the last. */
const pauses = [500, 15_000] as const

/** Tells of this node by annotations of its node in Kubernetes. */
export const pushToKubernetes: Controller = defineController({
  name: 'cluster.KubernetesPushController',
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

/** Learns of the others from the annotations of their nodes. `accessOf` gives the strongest access this node has, if it has any yet. */
export const pullFromKubernetes = (accessOf: () => KubeAccess | undefined, clientOf = kubeClient): Controller => {
  const nodes = new Map<string, SpecOf<typeof Affiliate>>()
  return defineController({
    name: 'cluster.KubernetesPullController',
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
      // Access changes with the cluster's authority, and no resource says when.
      wakeIn(pauses[1])
      if (!access) return
      background(`nodes ${Bun.hash(JSON.stringify(access)).toString(36)}`, async (signal, wake, tell) => {
        const client = clientOf(access)
        await watchNodes(client, { nodes, wake, tell }, signal).finally(() => client.close())
      })
      for (const spec of nodes.values()) if (spec.nodeId !== self) raw.put(`k8s/${spec.nodeId}`, spec)
    },
  })
}

interface Watching {
  readonly nodes: Map<string, SpecOf<typeof Affiliate>>
  wake(): void
  tell(error?: unknown): void
}

/** Keeps what nodes tell by their names, until the signal. */
async function watchNodes(client: KubeClient, { nodes, wake, tell }: Watching, signal: AbortSignal): Promise<void> {
  let pause: number = pauses[0]
  /** Says whether that is news: a node tells every few seconds that it lives. */
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
      tell()
      pause = pauses[0]
      for await (const { type, object } of client.watch(core.node, { resourceVersion }, { signal })) {
        if (type === 'BOOKMARK') continue
        if (take(object, type === 'DELETED')) wake()
      }
    } catch (error) {
      if (signal.aborted) return
      // Kubernetes of these days shows a worker no node but its own: that is said, and tried again.
      tell(error)
    }
    await systemClock.sleep(pause, signal)
    pause = Math.min(pause * 2, pauses[1])
  }
}
