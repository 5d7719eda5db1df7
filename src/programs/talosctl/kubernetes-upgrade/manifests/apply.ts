/** Applies manifests to a running cluster, and removes what is no longer in them. */
import { type KubeClient, type KubeKind, pathOf } from '../../../../kube/client.ts'
import { isNotFound, KubeError } from '../../../../kube/errors.ts'
import { fieldManager, inventoryKey, writeInventory } from '../../../../kube/inventory.ts'
import type { KubeObject } from '../../../../kube/object.ts'
import { conditionsOf } from '../../../../kube/pod.ts'
import { rolloutFailure, rolloutLag } from '../../../../kube/rollout.ts'
import type { Io } from '../../io.ts'
import { Final, within } from '../../machine/within.ts'
import { paintDiff } from '../../output/diff-paint.ts'
import { kindOf, liveObject, type ManifestOptions, type ManifestPlan, type PlannedObject, planManifests, stageOf } from './plan.ts'
import { changeOf, subjectOf } from './show.ts'

/** Milliseconds for a request that fails for now, and between two attempts. */
const [retryTimeout, retryInterval] = [180_000, 10_000]

/** Milliseconds between two looks at what was applied. */
const settleInterval = 2_000

/** How manifests are applied, and for how many milliseconds it is waited for the result; 0 does not wait. */
export interface ApplyManifestOptions extends ManifestOptions {
  readonly settleTimeout: number
}

/** Shows what would change; nothing is. Returns whether something would. */
export async function previewManifests(
  io: Io,
  kubernetes: KubeClient,
  manifests: readonly KubeObject[],
  options: ManifestOptions,
): Promise<boolean> {
  const plan = await retried(io, 'compare the manifests', () => planManifests(kubernetes, manifests, options))
  for (const { action, live, next } of plan.objects) show(io, action, live, next)
  for (const { live } of plan.pruned) io.stdout.write(` < Pruned ${subjectOf(live)}\n`)
  return plan.pruned.length > 0 || plan.objects.some(({ action }) => action !== 'skipped')
}

/** Applies the manifests in three stages, then removes what the inventory has and they do not, then waits until all of it works. */
export async function applyManifests(
  io: Io,
  kubernetes: KubeClient,
  manifests: readonly KubeObject[],
  options: ApplyManifestOptions,
): Promise<void> {
  const plan = await retried(io, 'compare the manifests', () => planManifests(kubernetes, manifests, options))
  for (const stage of [0, 1, 2]) {
    const objects = plan.objects.filter(({ object }) => stageOf(object) === stage)
    for (const planned of objects) {
      const next = await retried(io, `apply ${subjectOf(planned.object)}`, () => applyPlanned(io, kubernetes, planned))
      show(io, planned.action, planned.live, next)
    }
    if (stage < 2) await settled(io, kubernetes, objects, options.settleTimeout)
  }
  await prune(io, kubernetes, plan, options)
  await settled(io, kubernetes, plan.objects, options.settleTimeout)
}

function show(io: Io, action: PlannedObject['action'], live: KubeObject | undefined, next: KubeObject): void {
  if (action === 'skipped') io.stdout.write(` > skipped ${subjectOf(next)}: no changes\n`)
  else
    io.stdout.write(` < ${action === 'replaced' ? 'configured' : action} ${subjectOf(next)}\n${paintDiff(io.stdout, changeOf(live, next))}`)
}

async function applyPlanned(io: Io, kubernetes: KubeClient, { object, kind, live, next, action }: PlannedObject): Promise<KubeObject> {
  if (action === 'skipped') return next
  const known = kind ?? (await kindOf(kubernetes, object.apiVersion, object.kind))
  if (!known) throw new Error(`kind ${object.kind} of ${object.apiVersion} is not served yet`)
  if (action === 'replaced' && live) await remove(io, kubernetes, known, live)
  return kubernetes.apply(known, object, { fieldManager, force: true })
}

/** Removes an object and waits until it is gone. One that is gone already is no error. */
async function remove(io: Io, kubernetes: KubeClient, kind: KubeKind, live: KubeObject): Promise<void> {
  await removeInBackground(kubernetes, kind, live)
  await within(io, retryTimeout, `${subjectOf(live)} is gone`, async () => {
    const found = await liveObject(kubernetes, kind, live)
    if (found && found.metadata.uid === live.metadata.uid) throw new Error('it is still there')
  })
}

async function removeInBackground(kubernetes: KubeClient, kind: KubeKind, { metadata }: KubeObject): Promise<void> {
  // Only this very object: one of the same name that was made since is somebody else's.
  const body = JSON.stringify({ propagationPolicy: 'Background', ...(metadata.uid && { preconditions: { uid: metadata.uid } }) })
  try {
    await kubernetes.request('DELETE', pathOf(kind, metadata.namespace, metadata.name), { body })
  } catch (error) {
    if (!isNotFound(error) && !(error instanceof KubeError && error.status === 409)) throw error
  }
}

async function prune(io: Io, kubernetes: KubeClient, plan: ManifestPlan, options: ManifestOptions): Promise<void> {
  const write = (keys: ReadonlySet<string>) => retried(io, 'write the inventory', () => writeInventory(kubernetes, keys))
  // What is applied is in the inventory before anything is removed: an interruption leaves nothing behind that nobody knows.
  const all = plan.before.union(plan.keys)
  if (all.size > plan.before.size) await write(all)
  if (!options.prune) return
  for (const { kind, live } of plan.pruned) {
    await retried(io, `remove ${subjectOf(live)}`, () => removeInBackground(kubernetes, kind, live))
    io.stdout.write(` < deleted ${subjectOf(live)}\n`)
  }
  if (all.size > plan.keys.size) await write(plan.keys)
}

/** Waits until what was applied works: definitions are established, and workloads run with their current templates. */
async function settled(io: Io, kubernetes: KubeClient, objects: readonly PlannedObject[], timeout: number): Promise<void> {
  const waited = objects.filter(({ object }) =>
    ['CustomResourceDefinition', 'Deployment', 'DaemonSet', 'StatefulSet'].includes(object.kind),
  )
  if (timeout === 0 || waited.length === 0) return
  const left = new Map(waited.map((one) => [inventoryKey(one.object), one]))
  const check = async () => {
    for (const [key, { object }] of left) {
      const kind = await kindOf(kubernetes, object.apiVersion, object.kind)
      const live = kind && (await liveObject(kubernetes, kind, object))
      const failure = live && rolloutFailure(live)
      if (failure !== undefined) throw new Final(failure)
      const lag = live ? lagOf(live) : `${subjectOf(object)} is not there yet`
      if (lag !== undefined) throw new Error(lag)
      left.delete(key)
    }
  }
  await within(io, timeout, 'the manifests are in effect', check, settleInterval)
}

function lagOf(live: KubeObject): string | undefined {
  if (live.kind !== 'CustomResourceDefinition') return rolloutLag(live)
  const established = conditionsOf(live.status).some(({ type, status }) => type === 'Established' && status === 'True')
  return established ? undefined : `${subjectOf(live)} is not established yet`
}

/** Repeats what fails for now: a server that starts, a webhook that is not there yet. */
function retried<T>(io: Io, what: string, act: () => Promise<T>): Promise<T> {
  const attempt = async () => {
    try {
      return await act()
    } catch (error) {
      if (error instanceof KubeError && [400, 401, 405, 415, 422].includes(error.status)) throw new Final(error.message, { cause: error })
      throw error
    }
  }
  return within(io, retryTimeout, what, attempt, retryInterval)
}
