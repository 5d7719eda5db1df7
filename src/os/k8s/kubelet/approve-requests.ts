import { core, type KubeClient, pathOf } from '../../../kube/client.ts'
import { KubeError } from '../../../kube/errors.ts'
import { follow } from '../../../kube/follow.ts'
import type { KubeObject } from '../../../kube/object.ts'
import { pause } from '../../../timing/pause.ts'

/** How requests of one signer are decided. */
export interface Approval {
  signer: string
  /** The condition's text when a request is approved. */
  message: string
  /** Why a request is not granted with these nodes in the cluster; undefined when it is. */
  problem(request: KubeObject, nodes: readonly KubeObject[]): string | undefined
  approved?(request: KubeObject): void
  /** Called once for each reason of each request. */
  held?(request: KubeObject, reason: string): void
  /** Milliseconds before an undecided request is evaluated a second time; one second unless given. */
  delay?: number
}

/** Evaluation interval of undecided requests in milliseconds: the cluster's records of a new node come within seconds, others may never come. */
const firstDelay = 1_000
const longestDelay = 60_000
/** Requests that are remembered at once; any node may create more. */
const maxUndecided = 500

/**
 * Approves certificate requests until the signal. A request that is not granted is never denied but evaluated again, since its
 * records may not be there yet; the cluster drops it after a day. Throws only errors that the API server did not cause.
 */
export async function approveRequests(client: KubeClient, approval: Approval, signal: AbortSignal): Promise<void> {
  const undecided = new Map<string, { request: KubeObject; reason?: string }>()
  const life = new AbortController()
  const inner = AbortSignal.any([signal, life.signal])
  let arrived = Promise.withResolvers<void>()
  const seen = (request: KubeObject, gone = false) => {
    const name = request.metadata.name ?? ''
    if (gone || isDecided(request)) undecided.delete(name)
    else if (!undecided.has(name) && undecided.size < maxUndecided) {
      undecided.set(name, { request })
      arrived.resolve()
    }
  }
  const { delay: shortest = firstDelay } = approval
  const decide = async () => {
    for (let delay = shortest; ; delay = Math.min(longestDelay, delay * 2)) {
      await Promise.race([arrived.promise, pause(undecided.size > 0 ? delay : longestDelay, inner)])
      if (inner.aborted) return
      arrived = Promise.withResolvers<void>()
      if (undecided.size === 0) continue
      const before = undecided.size
      await decideAll(client, approval, undecided, inner).catch(onlyKube)
      if (undecided.size < before) delay = shortest
      // Any number of pending requests is evaluated together.
      await pause(shortest, inner)
    }
  }
  try {
    const query = { fieldSelector: `spec.signerName=${approval.signer}` }
    const followed = {
      listed(requests: readonly KubeObject[]) {
        for (const request of requests) seen(request)
      },
      changed: seen,
    }
    await Promise.race([follow(client, core.certificateSigningRequest, query, followed, inner, { longest: longestDelay }), decide()])
  } finally {
    life.abort(new Error('the other half ended'))
  }
}

async function decideAll(
  client: KubeClient,
  approval: Approval,
  undecided: Map<string, { request: KubeObject; reason?: string }>,
  signal: AbortSignal,
): Promise<void> {
  const { items: nodes } = await client.list(core.node, {}, { signal })
  for (const [name, entry] of undecided) {
    const reason = approval.problem(entry.request, nodes)
    if (reason === undefined) {
      await approve(client, entry.request, approval.message, signal)
      undecided.delete(name)
      approval.approved?.(entry.request)
    } else if (reason !== entry.reason) {
      entry.reason = reason
      approval.held?.(entry.request, reason)
    }
  }
}

async function approve(client: KubeClient, request: KubeObject, message: string, signal: AbortSignal): Promise<void> {
  const condition = { type: 'Approved', status: 'True', reason: 'NodeIsKnown', message }
  const body = JSON.stringify({ ...request, status: { ...(request.status as object), conditions: [condition] } })
  const path = `${pathOf(core.certificateSigningRequest, undefined, request.metadata.name)}/approval`
  try {
    await client.request('PUT', path, { body, signal })
  } catch (error) {
    // The request was decided by others or is gone: nothing is left to do.
    if (!(error instanceof KubeError) || (error.status !== 404 && error.status !== 409)) throw error
  }
}

function isDecided({ status }: KubeObject): boolean {
  const { conditions = [] } = (status ?? {}) as { conditions?: unknown[] }
  return conditions.length > 0
}

function onlyKube(error: unknown): void {
  if (!(error instanceof KubeError)) throw error
}
