/**
 * What is to be changed of a node so that it is as declared. What this system has put on a node it remembers there in
 * annotations; only that is ever taken away, what others put is theirs.
 */
import type { KubeObject } from '../../../kube/object.ts'

/** A taint as Kubernetes has it. */
export interface Taint {
  key: string
  value?: string
  effect: string
}

/** How a node should be. */
export interface NodeWishes {
  labels: Readonly<Record<string, string>>
  annotations: Readonly<Record<string, string>>
  /** Left as they are when not given. */
  taints?: readonly Taint[]
  cordoned: boolean
}

const owned = { labels: 'talos.dev/owned-labels', annotations: 'talos.dev/owned-annotations', taints: 'talos.dev/owned-taints' }
/** Notes that it was this system that cordoned a node. */
export const cordonMark = 'talos.dev/cordoned'

/** A merge patch that makes the node as wished; undefined when it is so. */
export function nodePatch(node: KubeObject, wishes: NodeWishes): Record<string, unknown> | undefined {
  const annotationsNow = node.metadata.annotations ?? {}
  const labels = differences(node.metadata.labels ?? {}, wishes.labels, ownedKeys(annotationsNow[owned.labels]))
  const annotations = differences(annotationsNow, wishes.annotations, ownedKeys(annotationsNow[owned.annotations]))
  const spec = (node.spec ?? {}) as { taints?: Taint[]; unschedulable?: boolean }
  const ownTaints = ownedKeys(annotationsNow[owned.taints])
  const taints = wishes.taints && withTaints(spec.taints ?? [], wishes.taints, ownTaints)

  remember(annotations.changes, annotationsNow, owned.labels, labels.owned)
  remember(annotations.changes, annotationsNow, owned.annotations, annotations.owned)
  if (taints) remember(annotations.changes, annotationsNow, owned.taints, taints.owned)

  const specChanges: Record<string, unknown> = {}
  if (taints?.changed) specChanges.taints = taints.taints
  const mine = annotationsNow[cordonMark] === 'true'
  if (wishes.cordoned && !spec.unschedulable) {
    specChanges.unschedulable = true
    annotations.changes[cordonMark] = 'true'
  } else if (!wishes.cordoned && mine) {
    specChanges.unschedulable = null
    annotations.changes[cordonMark] = null
  }
  const metadata = {
    ...(Object.keys(labels.changes).length > 0 && { labels: labels.changes }),
    ...(Object.keys(annotations.changes).length > 0 && { annotations: annotations.changes }),
  }
  if (Object.keys(metadata).length === 0 && Object.keys(specChanges).length === 0) return undefined
  return {
    // Taints are one list: nobody else may have changed it in between.
    metadata: { ...metadata, resourceVersion: node.metadata.resourceVersion },
    ...(Object.keys(specChanges).length > 0 && { spec: specChanges }),
  }
}

function differences(now: Readonly<Record<string, string>>, wanted: Readonly<Record<string, string>>, mine: ReadonlySet<string>) {
  const changes: Record<string, string | null> = {}
  const kept = new Set<string>()
  for (const [key, value] of Object.entries(wanted)) {
    const foreign = now[key] !== undefined && !mine.has(key)
    // What is there already with this very value needs no owner; with another value it is somebody else's.
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
  // One that is there already just as desired is owned too: the kubelet registers a node with its taints.
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
