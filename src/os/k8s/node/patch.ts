/**
 * The changes that a Node needs to become as declared. What this system has set on a Node is recorded there in annotations. Only
 * that is ever removed; what others set is left alone.
 */
import type { KubeObject } from '../../../kube/object.ts'

/** A taint as Kubernetes has it. */
export interface Taint {
  key: string
  value?: string
  effect: string
}

/** The desired state of a Node. */
export interface DesiredNode {
  labels: Readonly<Record<string, string>>
  annotations: Readonly<Record<string, string>>
  /** Left as they are when not given. */
  taints?: readonly Taint[]
  cordoned: boolean
}

const owned = { labels: 'talos.dev/owned-labels', annotations: 'talos.dev/owned-annotations', taints: 'talos.dev/owned-taints' }
/** Records that this system has cordoned a node. */
export const cordonMark = 'talos.dev/cordoned'

/** A merge patch of a Node. */
export interface NodePatch {
  readonly metadata: Readonly<Record<string, unknown>>
  readonly spec?: { readonly taints?: readonly Taint[]; readonly unschedulable?: boolean | null }
}

/** A merge patch that makes the Node as desired; undefined when it already is. */
export function nodePatch(node: KubeObject, desired: DesiredNode): NodePatch | undefined {
  const annotationsNow = node.metadata.annotations ?? {}
  const labels = differences(node.metadata.labels ?? {}, desired.labels, ownedKeys(annotationsNow[owned.labels]))
  const annotations = differences(annotationsNow, desired.annotations, ownedKeys(annotationsNow[owned.annotations]))
  const spec = (node.spec ?? {}) as { taints?: Taint[]; unschedulable?: boolean }
  const ownTaints = ownedKeys(annotationsNow[owned.taints])
  const taints = desired.taints && withTaints(spec.taints ?? [], desired.taints, ownTaints)

  remember(annotations.changes, annotationsNow, owned.labels, labels.owned)
  remember(annotations.changes, annotationsNow, owned.annotations, annotations.owned)
  if (taints) remember(annotations.changes, annotationsNow, owned.taints, taints.owned)

  const specChanges: { taints?: Taint[]; unschedulable?: boolean | null } = {}
  if (taints?.changed) specChanges.taints = taints.taints
  const mine = annotationsNow[cordonMark] === 'true'
  if (desired.cordoned && !spec.unschedulable) {
    specChanges.unschedulable = true
    annotations.changes[cordonMark] = 'true'
  } else if (!desired.cordoned && mine) {
    specChanges.unschedulable = null
    annotations.changes[cordonMark] = null
  }
  const metadata = {
    ...(Object.keys(labels.changes).length > 0 && { labels: labels.changes }),
    ...(Object.keys(annotations.changes).length > 0 && { annotations: annotations.changes }),
  }
  if (Object.keys(metadata).length === 0 && Object.keys(specChanges).length === 0) return undefined
  return {
    // Taints are one list: the patch fails if others have changed it in between.
    metadata: { ...metadata, resourceVersion: node.metadata.resourceVersion },
    ...(Object.keys(specChanges).length > 0 && { spec: specChanges }),
  }
}

function differences(now: Readonly<Record<string, string>>, wanted: Readonly<Record<string, string>>, mine: ReadonlySet<string>) {
  const changes: Record<string, string | null> = {}
  const kept = new Set<string>()
  for (const [key, value] of Object.entries(wanted)) {
    const foreign = now[key] !== undefined && !mine.has(key)
    // A key that already has this value needs no owner; with another value it belongs to others.
    if (foreign && now[key] !== value) continue
    if (!foreign || mine.has(key)) kept.add(key)
    if (now[key] !== value) changes[key] = value
  }
  for (const key of mine) if (!(key in wanted) && key in now) changes[key] = null
  return { changes, owned: [...kept].sort() }
}

function withTaints(now: readonly Taint[], wanted: readonly Taint[], mine: ReadonlySet<string>) {
  const kept = now.filter(({ key }) => !mine.has(key) || wanted.some((taint) => taint.key === key))
  const taints = kept.map((taint) => (mine.has(taint.key) ? (wanted.find(({ key }) => key === taint.key) ?? taint) : taint))
  const added = wanted.filter(({ key }) => !now.some((taint) => taint.key === key))
  // A taint that is already as desired is owned too: the kubelet registers a node with its taints.
  const same = (taint: Taint) =>
    now.some(({ key, value = '', effect }) => key === taint.key && effect === taint.effect && value === (taint.value ?? ''))
  const ownedNow = wanted.filter((taint) => mine.has(taint.key) || added.includes(taint) || same(taint)).map(({ key }) => key)
  const result = [...taints, ...added].map(({ key, value, effect, ...rest }) => ({ ...rest, key, ...(value && { value }), effect }))
  return { taints: result, owned: ownedNow.sort(), changed: !Bun.deepEquals(result, now) }
}

function ownedKeys(annotation: string | undefined): Set<string> {
  try {
    const keys = JSON.parse(annotation ?? '[]')
    return new Set(Array.isArray(keys) ? keys.filter((key) => typeof key === 'string') : [])
  } catch {
    return new Set()
  }
}

function remember(
  changes: Record<string, string | null>,
  now: Readonly<Record<string, string>>,
  annotation: string,
  keys: readonly string[],
): void {
  const value = keys.length > 0 ? JSON.stringify(keys) : undefined
  if (now[annotation] !== value) changes[annotation] = value ?? null
}
