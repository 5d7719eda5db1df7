/** Gives accounts their Secrets, or reports in events and in their status why not. */
import type { Clock } from '../../../cosi/clock.ts'
import type { Logger } from '../../../cosi/log.ts'
import { core, type KubeClient } from '../../../kube/client.ts'
import { isNotFound, KubeError } from '../../../kube/errors.ts'
import { follow } from '../../../kube/follow.ts'
import type { KubeObject } from '../../../kube/object.ts'
import { Accounts, mostAccounts } from './accounts.ts'
import {
  type Account,
  isCurrent,
  isLeftOver,
  newConfig,
  type Policy,
  type Refusal,
  refusalOf,
  secretKey,
  secretOf,
  serviceAccountKind,
} from './service-account.ts'

/** What serving needs. */
export interface Serving {
  readonly client: KubeClient
  readonly policy: Policy
  readonly clock: Clock
  readonly log: Logger
  /** Reports a problem with the API server; without an error it is over. */
  report(error?: unknown): void
}

/** Milliseconds between two looks at every Secret, for renewal and for what others have changed. */
const interval = 60_000
/** Milliseconds until an account is tried again that could not be served for a passing reason. */
const retryInterval = 5_000
/** Milliseconds between two batches of changes. */
const batchInterval = 200

/** The source of the events. */
const component = 'talos-sa-controller'

/** Serves all accounts of the cluster until the signal, then returns. */
export async function serveAccounts(serving: Serving, signal: AbortSignal): Promise<void> {
  const { client, log, report } = serving
  const tooMany = (account: string) => log.warn('too many service accounts, some are not served', { account, limit: mostAccounts })
  const accounts = new Accounts(tooMany)
  const life = new AbortController()
  const inner = AbortSignal.any([signal, life.signal])
  const followed = {
    listed(objects: readonly KubeObject[]) {
      accounts.listed(objects)
      report()
    },
    changed: (object: KubeObject, deleted: boolean) => accounts.changed(object, deleted),
    failed(error: KubeError) {
      // The definition of the kind is not applied yet, or was deleted.
      if (isNotFound(error)) accounts.listed([])
      report(error)
    },
  }
  try {
    await Promise.race([
      follow(client, serviceAccountKind, { limit: mostAccounts }, followed, inner),
      serveChanges(serving, accounts, inner),
    ])
  } finally {
    life.abort(new Error('the other half ended'))
  }
}

/** Serves accounts when they change, and all of them once a minute. */
async function serveChanges(serving: Serving, accounts: Accounts, signal: AbortSignal): Promise<void> {
  const { clock, log } = serving
  /** The last failure of an account, which is logged once. */
  const failures = new Map<string, string>()
  let nextLook = clock.deadline(interval)
  let again = new Set<string>()
  while (!signal.aborted) {
    const limit = again.size > 0 ? Math.min(retryInterval, nextLook.left) : nextLook.left
    const due = new Set([...(await accounts.next(limit, clock, signal)), ...again])
    if (nextLook.over) {
      for (const key of accounts.keys()) due.add(key)
      nextLook = clock.deadline(interval)
    }
    again = new Set()
    for (const key of due) {
      const account = accounts.get(key)
      if (!account || signal.aborted) continue
      try {
        if (!(await serve(serving, account, signal))) again.add(key)
        failures.delete(key)
      } catch (error) {
        if (signal.aborted) return
        if (!(error instanceof KubeError)) throw error
        again.add(key)
        const failure = `${error.status} ${error.reason}`
        // After a conflict it is read again: others have written it.
        if (error.status !== 409 && failures.get(key) !== failure) log.warn('serve service account failed', { account: key, error })
        failures.set(key, failure)
      }
    }
    for (const key of failures.keys()) if (!again.has(key)) failures.delete(key)
    await clock.sleep(batchInterval, signal)
  }
}

/** Brings the Secret of one account up to date; false when it has to be tried again soon. */
async function serve({ client, policy, clock, log }: Serving, account: Account, signal: AbortSignal): Promise<boolean> {
  const { namespace, name, roles = [] } = account
  const secret = await client.get(core.secret, name, namespace, { signal }).catch((error) => {
    if (isNotFound(error)) return undefined
    throw error
  })
  if (secret && isLeftOver(secret, account)) return false
  const refusal = refusalOf(account, secret, policy)
  if (refusal) {
    const reason = `${refusal.reason}: ${refusal.message}`
    if (account.failureReason === reason) return true
    await record(client, account, refusal, clock.now(), signal)
    await setFailureReason(client, account, reason, signal)
    log.warn('service account gets no access to the machine API', { account: `${namespace}/${name}`, reason: refusal.reason })
    return true
  }
  const stays = secret !== undefined && isCurrent(configIn(secret), roles, policy, clock.now())
  if (!stays) await write(client, secret, secretOf(account, newConfig(roles, policy, clock.now())), signal)
  if (stays && account.failureReason === undefined) return true
  await record(client, account, undefined, clock.now(), signal)
  if (account.failureReason !== undefined) await setFailureReason(client, account, null, signal)
  log.info('service account has access to the machine API', { account: `${namespace}/${name}`, roles: roles.join(' ') })
  return true
}

/** The client configuration in a Secret; empty when there is none. */
function configIn({ data }: KubeObject): string {
  const value = (data as Record<string, unknown> | undefined)?.[secretKey]
  return typeof value === 'string' ? Buffer.from(value, 'base64').toString('utf8') : ''
}

async function write(client: KubeClient, present: KubeObject | undefined, wanted: KubeObject, signal: AbortSignal): Promise<void> {
  if (!present) return void (await client.create(core.secret, wanted, { signal }))
  const { name = '', namespace, resourceVersion } = present.metadata
  // The patch fails when others have replaced the Secret since it was read.
  const body = { metadata: { resourceVersion }, data: wanted.data }
  await client.patch(core.secret, name, namespace, { type: 'application/merge-patch+json', body }, { signal })
}

/** A null removes the reason. */
async function setFailureReason(client: KubeClient, account: Account, failureReason: string | null, signal: AbortSignal): Promise<void> {
  const body = { metadata: { uid: account.uid }, status: { failureReason } }
  await client.patch(serviceAccountKind, account.name, account.namespace, { type: 'application/merge-patch+json', body }, { signal })
}

async function record(client: KubeClient, account: Account, refusal: Refusal | undefined, now: Date, signal: AbortSignal): Promise<void> {
  const { apiVersion, kind } = serviceAccountKind
  const { namespace, name, uid } = account
  const time = `${now.toISOString().slice(0, 19)}Z`
  const event = {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { generateName: `${name.slice(0, 200)}.`, namespace },
    involvedObject: { apiVersion, kind, namespace, name, uid },
    type: refusal ? 'Warning' : 'Normal',
    reason: refusal?.reason ?? 'Synced',
    message: refusal?.message ?? `the Secret "${name}" is up to date`,
    source: { component },
    firstTimestamp: time,
    lastTimestamp: time,
    count: 1,
  }
  await client.create(core.event, event, { signal })
}
