/**
 * The list of objects that belong to a set of manifests, as a ConfigMap: an object that is in the list and no longer in the
 * manifests can be removed. Nodes write it when they apply the manifests of a new cluster, upgrades when they change them.
 */
import { core, type KubeClient } from './client.ts'
import { isNotFound } from './errors.ts'
import type { KubeObject } from './object.ts'
import type { CallOptions } from './transport.ts'

/** The field manager of the applied objects. */
export const fieldManager = 'talos'

/** The name of the list. */
export const inventoryName = 'talos-bootstrap-manifests-inventory'

const namespace = 'kube-system'

/** The annotation of an object with the inventory it belongs to. */
export const inventoryAnnotation = 'config.k8s.io/owning-inventory'

/** What identifies an object in every version of its API. */
export interface ObjectIdentity {
  readonly namespace: string
  readonly name: string
  readonly group: string
  readonly kind: string
}

const rbac = 'rbac.authorization.k8s.io'

/** The group of an `apiVersion`; the core group is ''. */
export const groupOf = (apiVersion: string): string => (apiVersion.includes('/') ? (apiVersion.split('/')[0] ?? '') : '')

/** The key of an object in the list: `<namespace>_<name>_<group>_<kind>`. Only names of RBAC may hold a colon, which no key may. */
export function inventoryKey({ apiVersion, kind, metadata }: KubeObject): string {
  const group = groupOf(apiVersion)
  const name = metadata.name ?? ''
  return [metadata.namespace ?? '', group === rbac ? name.replaceAll(':', '__') : name, group, kind].join('_')
}

/** The object of a key; undefined for a key of another shape. */
export function identityOf(key: string): ObjectIdentity | undefined {
  const [, space = '', name = '', group = '', kind = ''] = /^([^_]*)_(.+)_([^_]*)_([^_]+)$/.exec(key) ?? []
  if (!name) return undefined
  return { namespace: space, name: group === rbac ? name.replaceAll('__', ':') : name, group, kind }
}

/** The keys that are in the list; none when there is no list yet. */
export async function listedKeys(client: KubeClient, options?: CallOptions): Promise<Set<string>> {
  try {
    const { data } = await client.get(core.configMap, inventoryName, namespace, options)
    return new Set(Object.keys((data as Record<string, string> | undefined) ?? {}))
  } catch (error) {
    if (isNotFound(error)) return new Set()
    throw error
  }
}

/** Replaces the list. */
export async function writeInventory(client: KubeClient, keys: Iterable<string>, options?: CallOptions): Promise<void> {
  const data = Object.fromEntries([...keys].toSorted().map((key) => [key, '']))
  const metadata = { name: inventoryName, namespace, labels: { 'cli-utils.sigs.k8s.io/inventory-id': inventoryName } }
  const written = await client.apply(core.configMap, { apiVersion: 'v1', kind: 'ConfigMap', metadata, data }, { fieldManager }, options)
  // Keys that another manager wrote are not removed by an apply.
  const others = Object.keys((written.data as Record<string, string> | undefined) ?? {}).filter((key) => !(key in data))
  if (others.length === 0) return
  const body = { data: Object.fromEntries(others.map((key) => [key, null])) }
  await client.patch(core.configMap, inventoryName, namespace, { type: 'application/merge-patch+json', body }, options)
}

/** The object with the annotation that it belongs to the inventory. */
export const owned = (object: KubeObject): KubeObject => ({
  ...object,
  metadata: { ...object.metadata, annotations: { ...object.metadata.annotations, [inventoryAnnotation]: inventoryName } },
})

/** The object with the namespace it is created in. */
export const placed = (object: KubeObject, namespaced: boolean): KubeObject =>
  namespaced && !object.metadata.namespace ? { ...object, metadata: { ...object.metadata, namespace: 'default' } } : object
