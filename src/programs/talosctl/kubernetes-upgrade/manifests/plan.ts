/** What applying manifests would change, found by dry runs of the API server. */
import type { KubeClient, KubeKind } from '../../../../kube/client.ts'
import { isNotFound, KubeError } from '../../../../kube/errors.ts'
import {
  fieldManager,
  groupOf,
  identityOf,
  inventoryKey,
  listedKeys,
  type ObjectIdentity,
  owned,
  placed,
} from '../../../../kube/inventory.ts'
import type { KubeObject } from '../../../../kube/object.ts'
import { messageOf } from '../../../../wire/error-message.ts'
import { Final } from '../../machine/within.ts'
import { type InventoryPolicy, refusal, refusedManifest } from './policy.ts'
import { isSame, subjectOf } from './show.ts'

/** How manifests are applied. */
export interface ManifestOptions {
  readonly policy: InventoryPolicy
  /** Replace objects that cannot be changed in place. */
  readonly force: boolean
  readonly prune: boolean
}

/** One object and what becomes of it. */
export interface PlannedObject {
  readonly object: KubeObject
  /** Undefined while the cluster does not serve the kind: its definition is among the manifests. */
  readonly kind: KubeKind | undefined
  /** As it is in the cluster. */
  readonly live: KubeObject | undefined
  /** As it will be. */
  readonly next: KubeObject
  readonly action: 'skipped' | 'created' | 'configured' | 'replaced'
}

/** An object that is in the inventory and no longer in the manifests. */
export interface PrunedObject {
  readonly kind: KubeKind
  readonly live: KubeObject
}

/** Everything that would change. */
export interface ManifestPlan {
  readonly objects: readonly PlannedObject[]
  readonly pruned: readonly PrunedObject[]
  /** Keys of the inventory now. */
  readonly before: ReadonlySet<string>
  /** Keys of the manifests. */
  readonly keys: ReadonlySet<string>
}

/** The plan. Throws Final with every object that may not be changed, before anything is. */
export async function planManifests(
  kubernetes: KubeClient,
  manifests: readonly KubeObject[],
  options: ManifestOptions,
): Promise<ManifestPlan> {
  const refused: string[] = []
  const objects: PlannedObject[] = []
  for (const manifest of manifests) {
    const planned = await planObject(kubernetes, manifest, options)
    if (typeof planned === 'string') refused.push(`${subjectOf(manifest)}: ${planned}`)
    else objects.push(planned)
  }
  const before = await listedKeys(kubernetes)
  const keys = new Set(objects.map(({ object }) => inventoryKey(object)))
  const pruned: PrunedObject[] = []
  for (const key of options.prune ? before : []) {
    const identity = keys.has(key) ? undefined : identityOf(key)
    const found = identity && (await findObject(kubernetes, identity))
    if (!found) continue
    const reason = refusal(found.live, options.policy)
    if (reason === undefined) pruned.push(found)
    else refused.push(`${subjectOf(found.live)}: ${reason}`)
  }
  if (refused.length > 0) throw new Final(`these objects are not changed:\n${refused.map((one) => `\t* ${one}\n`).join('')}`)
  return { objects, pruned, before, keys }
}

async function planObject(
  kubernetes: KubeClient,
  manifest: KubeObject,
  { policy, force }: ManifestOptions,
): Promise<PlannedObject | string> {
  const reason = refusedManifest(manifest)
  if (reason !== undefined) return reason
  const kind = await kindOf(kubernetes, manifest.apiVersion, manifest.kind)
  const object = owned(placed(manifest, kind?.namespaced === true))
  const live = kind && (await liveObject(kubernetes, kind, object))
  if (!kind || !live) return { object, kind, live: undefined, next: object, action: 'created' }
  try {
    const next = await kubernetes.apply(kind, object, { fieldManager, force: true, dryRun: true })
    if (isSame(live, next)) return { object, kind, live, next, action: 'skipped' }
    return refusal(live, policy) ?? { object, kind, live, next, action: 'configured' }
  } catch (error) {
    // Invalid: mostly a field that may not change.
    if (!(error instanceof KubeError && error.status === 422)) throw error
    if (!force) return `${messageOf(error)}: replace it with --manifests-force`
    return refusal(live, policy) ?? { object, kind, live, next: object, action: 'replaced' }
  }
}

/** The kind as the server has it; undefined while it does not serve it. */
export async function kindOf(kubernetes: KubeClient, apiVersion: string, kind: string): Promise<KubeKind | undefined> {
  try {
    return await kubernetes.kind(apiVersion, kind)
  } catch (error) {
    if (isNotFound(error)) return undefined
    throw error
  }
}

/** The object as it is in the cluster; undefined if it is not there. */
export async function liveObject(kubernetes: KubeClient, kind: KubeKind, { metadata }: KubeObject): Promise<KubeObject | undefined> {
  try {
    return await kubernetes.get(kind, metadata.name ?? '', metadata.namespace)
  } catch (error) {
    if (isNotFound(error)) return undefined
    throw error
  }
}

/** Namespaces of Kubernetes itself, whose removal would take everything in them away. */
const kept: readonly string[] = ['default', 'kube-node-lease', 'kube-public', 'kube-system']

async function findObject(kubernetes: KubeClient, { group, kind: name, ...identity }: ObjectIdentity): Promise<PrunedObject | undefined> {
  if (name === 'Namespace' && kept.includes(identity.name)) return undefined
  const apiVersion = group === '' ? 'v1' : await preferredVersion(kubernetes, group)
  const kind = apiVersion && (await kindOf(kubernetes, apiVersion, name))
  if (!kind) return undefined
  const live = await liveObject(kubernetes, kind, { apiVersion, kind: name, metadata: identity })
  return live && live.metadata.deletionTimestamp === undefined ? { kind, live } : undefined
}

async function preferredVersion(kubernetes: KubeClient, group: string): Promise<string | undefined> {
  try {
    const path = `/apis/${encodeURIComponent(group)}`
    return (await kubernetes.request<{ preferredVersion: { groupVersion: string } }>('GET', path)).preferredVersion.groupVersion
  } catch (error) {
    if (isNotFound(error)) return undefined
    throw error
  }
}

const first: readonly string[] = ['Namespace', 'CustomResourceDefinition', 'ClusterRole']

/** The stage in which a kind is applied: what others need, what they name, everything else. */
export function stageOf({ apiVersion, kind }: KubeObject): 0 | 1 | 2 {
  if (first.includes(kind)) return 0
  return kind.endsWith('Class') && groupOf(apiVersion) !== '' ? 1 : 2
}
