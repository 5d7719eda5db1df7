import { expect, test } from 'bun:test'
import { makeClock } from '../../../../src/cosi/clock.ts'
import { createLogger } from '../../../../src/cosi/log.ts'
import { core, type KubeClient, type KubeKind } from '../../../../src/kube/client.ts'
import { KubeError } from '../../../../src/kube/errors.ts'
import type { KubeObject } from '../../../../src/kube/object.ts'
import type { WatchEvent } from '../../../../src/kube/watch-events.ts'
import { serveAccounts } from '../../../../src/os/k8s/api-access/serve.ts'
import type { Policy } from '../../../../src/os/k8s/api-access/service-account.ts'
import { newCA, toBase64 } from '../../../../src/pki/certificate.ts'

const { crt, key } = newCA({ subject: { organizations: ['talos'] } })
const policy: Policy = { authority: { crt: toBase64(crt), key: toBase64(key) }, roles: ['os:reader'], namespaces: ['tools'] }

/** An API server in memory with accounts, Secrets and events, and accounts that are served from it. */
function cluster({ fails = () => undefined }: { fails?: (what: string) => KubeError | undefined } = {}) {
  const objects = new Map<string, KubeObject>()
  const events: KubeObject[] = []
  const calls: string[] = []
  const logged: string[] = []
  let notify: (event: WatchEvent) => void = () => {}
  let version = 0
  const place = ({ kind }: KubeKind, namespace?: string, name?: string) => `${kind} ${namespace}/${name}`
  const put = (kind: KubeKind, object: KubeObject): KubeObject => {
    const { namespace, name } = object.metadata
    const stored = { ...object, metadata: { ...object.metadata, resourceVersion: String(++version) } }
    objects.set(place(kind, namespace, name), stored)
    if (kind.kind === 'ServiceAccount') notify({ type: 'MODIFIED', object: stored })
    return stored
  }
  const call = (what: string) => {
    calls.push(what)
    const failure = fails(what)
    if (failure) throw failure
  }
  const client = {
    async list(kind: KubeKind) {
      call(`list ${kind.kind}`)
      return { items: [...objects.values()].filter((object) => object.kind === kind.kind), resourceVersion: String(version) }
    },
    async *watch(_: KubeKind, __: object, { signal }: { signal: AbortSignal }): AsyncGenerator<WatchEvent, void> {
      for (;;) {
        const { promise, resolve } = Promise.withResolvers<WatchEvent | undefined>()
        notify = resolve
        signal.addEventListener('abort', () => resolve(undefined), { once: true })
        const event = await promise
        if (!event) throw signal.reason
        yield event
      }
    },
    async get(kind: KubeKind, name: string, namespace: string) {
      call(`get ${place(kind, namespace, name)}`)
      const found = objects.get(place(kind, namespace, name))
      if (!found) throw new KubeError(404, 'NotFound', 'not found')
      return found
    },
    async create(kind: KubeKind, object: KubeObject) {
      call(`create ${kind.kind}`)
      if (kind.kind === 'Event') events.push(object)
      else put(kind, object)
      return object
    },
    async patch(kind: KubeKind, name: string, namespace: string, { body }: { body: { status?: object; data?: object } }) {
      call(`patch ${place(kind, namespace, name)}`)
      const present = objects.get(place(kind, namespace, name))
      const { failureReason } = (body.status ?? {}) as { failureReason?: string | null }
      const status = failureReason ? { failureReason } : {}
      put(kind, { ...present, ...(body.status ? { status } : { data: body.data }) } as KubeObject)
    },
  } as unknown as KubeClient

  const time = { wall: Date.UTC(2026, 0, 1), elapsed: 0 }
  const sleepers = new Set<{ until: number; wake(): void }>()
  const clock = makeClock({
    now: () => new Date(time.wall),
    elapsed: () => time.elapsed,
    sleep(ms, signal) {
      const { promise, resolve } = Promise.withResolvers<void>()
      const sleeper = { until: time.elapsed + ms, wake: resolve }
      sleepers.add(sleeper)
      signal?.addEventListener('abort', () => resolve(), { once: true })
      return promise.finally(() => sleepers.delete(sleeper))
    },
  })
  /** Lets promises go as far as they come without time. */
  const idle = async () => {
    for (let turn = 0; turn < 50; turn++) await Promise.resolve()
    await new Promise<void>((resolve) => setImmediate(resolve))
  }
  const pass = async (ms: number) => {
    for (let left = ms; left > 0; left -= 1_000) {
      time.wall += Math.min(1_000, left)
      time.elapsed += Math.min(1_000, left)
      for (const { until, wake } of sleepers) if (until <= time.elapsed) wake()
      await idle()
    }
  }
  const end = new AbortController()
  const log = createLogger(({ message }) => logged.push(message))
  const start = (): Promise<void> => serveAccounts({ client, policy, clock, log, report: () => {} }, end.signal)
  const account = (name: string, roles: unknown = ['os:reader'], namespace = 'tools') =>
    put({ kind: 'ServiceAccount' } as KubeKind, {
      ...{ apiVersion: 'talos.dev/v1alpha1', kind: 'ServiceAccount', metadata: { name, namespace, uid: `uid-${name}` }, spec: { roles } },
    })
  return {
    ...{ account, calls, end, events, idle, logged, pass, put, start, time },
    secret: (name: string) => objects.get(`Secret tools/${name}`),
    drop: (name: string) => objects.delete(`Secret tools/${name}`),
    failureOf: (name: string) => (objects.get(`ServiceAccount tools/${name}`)?.status as { failureReason?: string })?.failureReason,
    reasons: () => events.map(({ involvedObject, reason }) => `${(involvedObject as { name: string }).name} ${reason}`),
  }
}

test('an account gets its Secret, then an event, and nothing more while nothing changes', async () => {
  const { account, calls, end, events, idle, pass, reasons, secret, start } = cluster()
  account('a')
  const served = start()
  await idle()
  expect(calls).toEqual(['list ServiceAccount', 'get Secret tools/a', 'create Secret', 'create Event'])
  expect(secret('a')?.metadata.ownerReferences).toMatchObject([{ name: 'a', uid: 'uid-a', controller: true }])
  expect(reasons()).toEqual(['a Synced'])
  expect(events[0]).toMatchObject({ type: 'Normal', source: { component: 'talos-sa-controller' }, metadata: { namespace: 'tools' } })
  await pass(120_000)
  expect(calls.slice(4)).toEqual(['get Secret tools/a', 'get Secret tools/a'])
  end.abort(new Error('enough'))
  await served
})

test('a certificate is renewed in its last hour, and a Secret that others changed or deleted is made again', async () => {
  const { account, drop, end, idle, pass, put, secret, start, time } = cluster()
  account('a')
  const served = start()
  await idle()
  const first = secret('a')
  time.wall += 4.9 * 3_600_000
  await pass(61_000)
  expect(secret('a')).toEqual(first)
  time.wall += 0.2 * 3_600_000
  await pass(61_000)
  expect(secret('a')?.data).not.toEqual(first?.data)
  put(core.secret, { ...(secret('a') as KubeObject), data: { config: 'c3BvaWxlZA==' } })
  await pass(61_000)
  expect(secret('a')?.data).not.toEqual({ config: 'c3BvaWxlZA==' })
  drop('a')
  await pass(61_000)
  expect(secret('a')).toBeDefined()
  end.abort(new Error('enough'))
  await served
})

test('a refusal is in one event and in the status; both are over once the account is allowed', async () => {
  const { account, end, failureOf, idle, logged, pass, reasons, secret, start } = cluster()
  const served = start()
  await idle()
  account('a', ['os:admin'])
  await pass(130_000)
  expect(failureOf('a')).toBe('ErrRolesNotAllowed: role "os:admin" is not in machine.features.kubernetesTalosAPIAccess.allowedRoles')
  expect(secret('a')).toBeUndefined()
  expect(reasons()).toEqual(['a ErrRolesNotAllowed'])
  account('a', ['os:reader'])
  await pass(2_000)
  expect(failureOf('a')).toBeUndefined()
  expect(secret('a')).toBeDefined()
  expect(reasons()).toEqual(['a ErrRolesNotAllowed', 'a Synced'])
  expect(logged).toEqual(['service account gets no access to the machine API', 'service account has access to the machine API'])
  end.abort(new Error('enough'))
  await served
})

test('the Secret of others is left alone, and used once it is gone', async () => {
  const { account, drop, end, idle, pass, put, reasons, secret, start } = cluster()
  const foreign = put(core.secret, {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'a', namespace: 'tools' },
    data: { mine: 'eA==' },
  })
  account('a')
  const served = start()
  await idle()
  expect(secret('a')).toEqual(foreign)
  drop('a')
  await pass(61_000)
  expect(secret('a')?.data).toHaveProperty('config')
  expect(reasons()).toEqual(['a ErrResourceExists', 'a Synced'])
  end.abort(new Error('enough'))
  await served
})

test('a failure is logged once and tried again after seconds; the other accounts are served', async () => {
  let closed = true
  const fails = (what: string) => (closed && what === 'get Secret tools/a' ? new KubeError(403, 'Forbidden', 'terminating') : undefined)
  const { account, end, idle, logged, pass, secret, start } = cluster({ fails })
  account('a')
  account('b')
  const served = start()
  await idle()
  await pass(20_000)
  expect(secret('b')).toBeDefined()
  expect(logged.filter((message) => message === 'serve service account failed')).toHaveLength(1)
  closed = false
  await pass(6_000)
  expect(secret('a')).toBeDefined()
  end.abort(new Error('enough'))
  await served
})

test('more accounts than are served are reported once', async () => {
  const { account, end, idle, logged, pass, secret, start } = cluster()
  for (let index = 0; index < 1_002; index++) account(`a${index}`)
  const served = start()
  await idle()
  for (let turn = 0; turn < 400 && !secret('a999'); turn++) await idle()
  await pass(1_000)
  expect([secret('a999'), secret('a1000'), secret('a1001')].map(Boolean)).toEqual([true, false, false])
  expect(logged.filter((message) => message === 'too many service accounts, some are not served')).toHaveLength(1)
  end.abort(new Error('enough'))
  await served
})
