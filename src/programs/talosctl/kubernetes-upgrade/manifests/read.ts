/** The manifests of the cluster as a control plane renders them from its configuration. */
import type { KubeObject } from '../../../../kube/object.ts'
import type { Cluster } from '../../cluster.ts'
import { failedWith } from '../../failure.ts'
import { resourceOf } from '../../machine/machine.ts'
import { specOf } from '../../resource/definition.ts'
import { withoutDigest } from '../versions.ts'

const timeout = 30_000

/** Reads all objects, in their order. Throws when the node has not loaded all of them: what is missing would be taken for removed. */
export async function readManifests(cluster: Cluster, node: string): Promise<KubeObject[]> {
  const found = new Map<string, KubeObject[]>()
  const request = { namespace: 'controlplane', type: 'Manifests.kubernetes.talos.dev' }
  for await (const { resource } of cluster.stream('cosi.resource.State/List', request, { node, timeout }))
    if (resource) found.set(resource.metadata?.id ?? '', objectsOf(specOf(resource)))
  if (found.size === 0) throw new Error('the node has rendered no manifests')
  const missing = (await extraManifests(cluster, node)).filter((id) => !found.has(id))
  if (missing.length > 0) throw new Error(`the node has not loaded ${missing.join(', ')}`)
  return [...found].toSorted(([a], [b]) => (a < b ? -1 : 1)).flatMap(([, objects]) => objects)
}

/** A spec is the list of objects; some systems put it below `Items`. */
function objectsOf(spec: unknown): KubeObject[] {
  if (Array.isArray(spec)) return spec as KubeObject[]
  const { items = [] } = (spec ?? {}) as { items?: KubeObject[] }
  return items
}

/** The ids of the manifests that the configuration adds. */
async function extraManifests(cluster: Cluster, node: string): Promise<string[]> {
  const type = 'ExtraManifestsConfigs.kubernetes.talos.dev'
  try {
    const spec = await resourceOf<{ extraManifests?: { name: string; priority: string }[] }>(
      cluster,
      node,
      'controlplane',
      type,
      'extra-manifests',
    )
    return (spec.extraManifests ?? []).map(({ name, priority }) => `${priority}-${name}`)
  } catch (error) {
    if (failedWith(error, 'NotFound')) return []
    throw error
  }
}

interface PodTemplate {
  readonly spec?: { readonly template?: { readonly spec?: { readonly containers?: readonly { name: string; image: string }[] } } }
}

const isProxy = ({ kind, metadata }: KubeObject) => kind === 'DaemonSet' && metadata.name === 'kube-proxy'

/** The image of kube-proxy in manifests; undefined where they do not have it. */
export function proxyImageIn(objects: readonly KubeObject[]): string | undefined {
  const proxy = objects.find(isProxy) as (KubeObject & PodTemplate) | undefined
  return proxy?.spec?.template?.spec?.containers?.find(({ name }) => name === 'kube-proxy')?.image
}

/** Throws while a node has not rendered its manifests with this image of kube-proxy. */
export function checkRendered(objects: readonly KubeObject[], proxyImage: string | undefined): void {
  const image = proxyImageIn(objects)
  if (proxyImage !== undefined && image !== undefined && withoutDigest(image) !== withoutDigest(proxyImage))
    throw new Error(`the manifests still have ${image}`)
}

/** The manifests as they will be with another image of kube-proxy; everything else of them stays within the supported versions. */
export function withProxyImage(objects: readonly KubeObject[], image: string): KubeObject[] {
  return objects.map((object) => {
    if (!isProxy(object)) return object
    const copy = structuredClone(object) as KubeObject & { spec: { template: { spec: { containers: { name: string; image: string }[] } } } }
    for (const container of copy.spec.template.spec.containers) if (container.name === 'kube-proxy') container.image = image
    return copy
  })
}
