import { systemClock } from '../../cosi/clock.ts'
import type { Logger } from '../../cosi/log.ts'
import { core, type KubeClient, type KubeKind } from '../../kube/client.ts'
import { isNotFound, KubeError } from '../../kube/errors.ts'
import { fieldManager, inventoryKey, listedKeys, owned, placed, writeInventory } from '../../kube/inventory.ts'
import { describeObject, type KubeObject } from '../../kube/object.ts'
import { pause } from '../../timing/pause.ts'
import { systemNamespace } from './manifests/objects.ts'

/** Manifests by id, applied in the order of the ids. */
export type Manifests = readonly { id: string; objects: readonly KubeObject[] }[]

/** Retry interval after a temporary failure, in milliseconds. */
const retryDelay = 200

/**
 * Creates the objects that the cluster was not given yet, in order; objects whose namespace or kind comes later are created at the
 * end. An object that is in the inventory or exists already is left as it is: what the cluster's owners changed or removed stays so,
 * until they upgrade the manifests. All of them are in the inventory afterwards. Throws the first permanent error after everything
 * has been tried.
 */
export async function applyManifests(client: KubeClient, manifests: Manifests, context: ApplyContext): Promise<void> {
  const { log, signal } = context
  const known = await listedKeys(client, { signal })
  const inventory = new Set(known)
  const failures: unknown[] = []
  let left = manifests.flatMap(({ id, objects }) => sorted(objects).map((object) => ({ id, object })))
  for (const wait of [false, true]) {
    const early: typeof left = []
    for (const { id, object } of left) {
      try {
        const key = await createObject(client, object, known, context, wait)
        if (key === undefined) early.push({ id, object })
        else inventory.add(key)
      } catch (error) {
        if (signal.aborted) throw signal.reason
        log.warn('apply object failed', { manifest: id, object: describeObject(object), error })
        failures.push(error)
      }
    }
    left = early
  }
  if (inventory.size > known.size) await writeInventory(client, inventory, { signal })
  if (failures.length > 0) throw failures[0]
}

/** Resolves when the API server is ready for all clients: its own roles and the system's namespace exist. */
export async function apiReady(client: KubeClient, signal: AbortSignal): Promise<void> {
  for (;;) {
    try {
      await client.request('GET', '/readyz', { signal, timeout: 5000 })
      await client.get(core.namespace, systemNamespace, undefined, { signal, timeout: 5000 })
      return
    } catch (error) {
      if (signal.aborted) throw signal.reason
      if (!(error instanceof KubeError)) throw error
      await pause(retryDelay, signal)
    }
  }
}

interface ApplyContext {
  readonly log: Logger
  readonly signal: AbortSignal
}

/** Returns the key of the object once it is there. Waits for a missing namespace or kind only if `wait` is set. */
async function createObject(
  client: KubeClient,
  object: KubeObject,
  known: ReadonlySet<string>,
  { log, signal }: ApplyContext,
  wait: boolean,
): Promise<string | undefined> {
  const end = systemClock.deadline(30_000)
  for (;;) {
    try {
      const kind = await client.kind(object.apiVersion, object.kind, { signal })
      const whole = placed(object, kind.namespaced)
      const key = inventoryKey(whole)
      if (known.has(key)) return key
      if (await exists(client, kind, whole, signal)) {
        log.info('object exists already, left alone', { object: describeObject(whole) })
        return key
      }
      await client.apply(kind, owned(whole), { fieldManager, force: false }, { signal })
      return key
    } catch (error) {
      if (signal.aborted || !(error instanceof KubeError)) throw error
      if (error.status === 404 && !wait) return undefined
      if (!passing(error) || end.over) throw error
      await pause(retryDelay, signal)
    }
  }
}

async function exists(client: KubeClient, kind: KubeKind, { metadata }: KubeObject, signal: AbortSignal): Promise<boolean> {
  try {
    await client.get(kind, metadata.name ?? '', metadata.namespace, { signal })
    return true
  } catch (error) {
    if (isNotFound(error)) return false
    throw error
  }
}

/** Whether a retry may succeed: the server is starting, or a namespace or kind is about to appear. */
function passing({ status, reason }: KubeError): boolean {
  return status === 0 ? reason !== 'Malformed' : status === 404 || status === 403 || status === 409 || status === 429 || status >= 500
}

const order = ['Namespace', 'CustomResourceDefinition', 'ServiceAccount', 'ClusterRole', 'ClusterRoleBinding']

/** Objects that others depend on come first. */
function sorted(objects: readonly KubeObject[]): KubeObject[] {
  const rank = ({ kind }: KubeObject) => (order.includes(kind) ? order.indexOf(kind) : order.length)
  return [...objects].sort((a, b) => rank(a) - rank(b))
}
