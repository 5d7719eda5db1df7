/**
 * The behaviour of a resource store, independent of the transport. Run on the local store and on the same
 * store through the resource API. Errors are compared as gRPC statuses, which both have.
 */
import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import * as fc from 'fast-check'
import { StoreError } from '../../src/cosi/errors.ts'
import type { Metadata, Phase, Resource } from '../../src/cosi/resource.ts'
import type { Selector } from '../../src/cosi/selector.ts'
import { HostnameStatus } from '../../src/os/network/resources/hostname.ts'
import { type StatusName, toRpcError } from '../../src/rpc/status.ts'
import { runs } from '../support/runs.ts'

/** The resource type of the suite. */
export const Kind = HostnameStatus

/** Its spec. */
export interface Spec {
  hostname: string
  domainname: string
}

/** An event as a watcher sees it. */
export interface Seen {
  readonly type: 'created' | 'updated' | 'destroyed' | 'bootstrapped' | 'errored' | 'noop'
  readonly resource?: Resource<Spec> | undefined
  readonly old?: Resource<Spec> | undefined
  /** Opaque: only passed back to the store. */
  readonly bookmark?: unknown
}

/** How a watch begins. */
export interface Watching {
  readonly id?: string
  readonly bootstrap?: boolean
  readonly aggregated?: boolean
  readonly tail?: number
  readonly after?: unknown
  readonly labels?: readonly Selector[]
  readonly signal: AbortSignal
}

/** The store interface under test. */
export interface State {
  get(id: string): Promise<Resource<Spec> | undefined>
  list(query?: { labels?: readonly Selector[]; id?: string }): Promise<Resource<Spec>[]>
  create(id: string, spec: Spec, options?: { owner?: string; labels?: Record<string, string> }): Promise<Resource<Spec>>
  update(resource: Resource<Spec>, options?: { owner?: string; expectedPhase?: Phase }): Promise<Resource<Spec>>
  destroy(id: string, options?: { owner?: string }): Promise<void>
  /** Resolves once the watch is established: no later change is missed. */
  watch(watching: Watching): Promise<AsyncIterableIterator<Seen>>
}

/** A new, empty store and its cleanup. */
export interface Opened {
  readonly state: State
  /** Many changes of one resource in one step, which only the store itself can make. */
  storm(id: string, changes: number): void
  close(): Promise<void>
}

const spec = (hostname: string): Spec => ({ hostname, domainname: '' })
const changed = (resource: Resource<Spec>, metadata: Partial<Metadata>, next = resource.spec): Resource<Spec> => ({
  metadata: { ...resource.metadata, ...metadata },
  spec: next,
})

async function refusal(act: Promise<unknown>): Promise<StatusName> {
  return act.then(
    () => 'OK' as const,
    (error) => toRpcError(error).status,
  )
}

/** Updates the current version of a resource; retries on conflict. */
async function modify(state: State, id: string, change: (resource: Resource<Spec>) => Resource<Spec>, owner = ''): Promise<Resource<Spec>> {
  for (;;) {
    const present = await state.get(id)
    if (!present) throw new Error(`"${id}" is gone`)
    try {
      return await state.update(change(present), { owner })
    } catch (error) {
      if (!/ at version \d+, not \d+/.test((error as Error).message)) throw error
    }
  }
}

/** Runs the suite; `times` is the number of runs of a property at full strength. */
export function conformance(title: string, open: () => Promise<Opened>, { times }: { times: number }): void {
  describe(title, () => {
    let opened: Opened
    let state: State
    let stop: AbortController
    const old: Opened[] = []

    beforeEach(async () => {
      stop?.abort()
      if (opened) old.push(opened)
      stop = new AbortController()
      opened = await open()
      state = opened.state
    })
    afterAll(async () => {
      stop.abort()
      for (const each of [...old, opened]) await each.close()
    })

    const take = async (events: AsyncIterator<Seen>, count: number): Promise<Seen[]> => {
      const seen: Seen[] = []
      while (seen.length < count) {
        const { value, done } = await events.next()
        if (done) break
        seen.push(value)
      }
      return seen
    }
    const summary = ({ type, resource }: Seen) =>
      resource ? `${type} ${resource.metadata.id}@${resource.metadata.version} ${resource.spec.hostname}` : type

    test('a created resource exists at version 1, running, with its owner and labels', async () => {
      const made = await state.create('a', spec('x'), { owner: 'me', labels: { color: 'red' } })
      const expected = {
        namespace: 'network',
        type: Kind.type,
        id: 'a',
        version: 1,
        owner: 'me',
        phase: 'running',
        labels: { color: 'red' },
        finalizers: [],
      }
      expect(made.metadata).toMatchObject(expected as never)
      const found = await state.get('a')
      expect(found).toEqual(made)
      expect(found?.spec).toEqual(spec('x'))
      expect(await state.get('b')).toBeUndefined()
    })

    test('a list is sorted by id and filtered by label and id', async () => {
      for (const id of ['c', 'a', 'b']) await state.create(id, spec(id), { labels: id === 'b' ? {} : { color: id } })
      const ids = async (query?: Parameters<State['list']>[0]) => (await state.list(query)).map(({ metadata }) => metadata.id)
      expect(await ids()).toEqual(['a', 'b', 'c'])
      expect(await ids({ labels: [[{ key: 'color', op: 'exists' }]] })).toEqual(['a', 'c'])
      expect(await ids({ labels: [[{ key: 'color', op: 'equal', values: ['c'] }]] })).toEqual(['c'])
      expect(
        await ids({ labels: [[{ key: 'color', op: 'exists', invert: true }], [{ key: 'color', op: 'in', values: ['a', 'z'] }]] }),
      ).toEqual(['a', 'b'])
      expect(await ids({ id: '^[bc]$' })).toEqual(['b', 'c'])
    })

    test('each refusal has its own status', async () => {
      const made = await state.create('a', spec('x'), { owner: 'me' })
      expect(await refusal(state.create('a', spec('y')))).toBe('AlreadyExists')
      expect(await refusal(state.update(changed(made, { id: 'b' })))).toBe('NotFound')
      expect(await refusal(state.update(changed(made, {}, spec('y'))))).toBe('PermissionDenied')
      expect(await refusal(state.update(changed(made, { version: 7 }, spec('y')), { owner: 'me' }))).toBe('FailedPrecondition')
      expect(await refusal(state.update(changed(made, {}, spec('y')), { owner: 'me', expectedPhase: 'tearingDown' }))).toBe(
        'InvalidArgument',
      )
      expect(await refusal(state.destroy('b'))).toBe('NotFound')
      expect(await refusal(state.destroy('a'))).toBe('PermissionDenied')
      expect((await state.get('a'))?.metadata.version).toBe(1)
      expect(await refusal(state.destroy('a', { owner: 'me' }))).toBe('OK')
      expect(await state.get('a')).toBeUndefined()
    })

    test('an update increments the version, and of two from one version one wins', async () => {
      const made = await state.create('a', spec('x'))
      const [first, second] = await Promise.allSettled([
        state.update(changed(made, {}, spec('y'))),
        state.update(changed(made, {}, spec('z'))),
      ])
      expect([first.status, second.status].sort()).toEqual(['fulfilled', 'rejected'])
      expect((await state.get('a'))?.metadata.version).toBe(2)
    })

    test('nothing is lost when many change one resource at once', async () => {
      await state.create('a', spec('0'))
      const add = () => modify(state, 'a', (present) => changed(present, {}, spec(String(Number(present.spec.hostname) + 1))))
      await Promise.all(Array.from({ length: 8 }, () => add().then(add).then(add)))
      expect(await state.get('a')).toMatchObject({ spec: { hostname: '24' }, metadata: { version: 25 } })
    })

    test('a finalizer prevents destruction, also one added during teardown; the resource does not return to running', async () => {
      await state.create('a', spec('x'))
      await modify(state, 'a', (present) => changed(present, { finalizers: ['holder'] }))
      expect(await refusal(state.destroy('a'))).toBe('FailedPrecondition')
      const torn = await modify(state, 'a', (present) => changed(present, { phase: 'tearingDown' }))
      expect(torn.metadata).toMatchObject({ phase: 'tearingDown', finalizers: ['holder'] })
      expect(await refusal(state.update(changed(torn, { phase: 'running' })))).toBe('InvalidArgument')
      await state.update(changed(torn, { finalizers: ['holder', 'late'] }))
      expect(await refusal(state.destroy('a'))).toBe('FailedPrecondition')
      await modify(state, 'a', (present) => changed(present, { finalizers: [] }))
      await state.destroy('a')
      expect(await state.get('a')).toBeUndefined()
    })

    test('a watch of one resource starts with its state, existing or not, and continues with its changes only', async () => {
      const events = await state.watch({ id: 'a', signal: stop.signal })
      await state.create('b', spec('other'))
      const made = await state.create('a', spec('x'))
      await state.update(changed(made, {}, spec('y')))
      await state.destroy('a')
      const seen = await take(events, 4)
      expect(seen.map(({ type, resource }) => `${type} ${resource?.metadata.id}`)).toEqual([
        'destroyed a',
        'created a',
        'updated a',
        'destroyed a',
      ])
      expect(seen[2]?.old?.spec.hostname).toBe('x')
    })

    test('a watch of a type yields changes from now on', async () => {
      await state.create('a', spec('x'))
      const events = await state.watch({ signal: stop.signal })
      await modify(state, 'a', (present) => changed(present, {}, spec('y')))
      await state.create('b', spec('z'))
      expect((await take(events, 2)).map(summary)).toEqual(['updated a@2 y', 'created b@1 z'])
    })

    for (const aggregated of [false, true])
      test(`a watch with contents starts with them${aggregated ? ', all at once' : ''}`, async () => {
        await state.create('b', spec('y'))
        await state.create('a', spec('x'))
        const events = await state.watch({ bootstrap: true, aggregated, signal: stop.signal })
        await state.create('c', spec('z'))
        expect((await take(events, 4)).map(summary)).toEqual(['created a@1 x', 'created b@1 y', 'bootstrapped', 'created c@1 z'])
      })

    test('a watch starts exactly with the last events, or after a bookmark', async () => {
      const all = await state.watch({ signal: stop.signal })
      await state.create('a', spec('0'))
      for (let at = 1; at <= 5; at++) await modify(state, 'a', (present) => changed(present, {}, spec(String(at))))
      const seen = await take(all, 6)
      expect((await take(await state.watch({ tail: 2, signal: stop.signal }), 2)).map(summary)).toEqual(['updated a@5 4', 'updated a@6 5'])
      const later = await take(await state.watch({ after: seen[2]!.bookmark, signal: stop.signal }), 3)
      expect(later.map(summary)).toEqual(seen.slice(3).map(summary))
    })

    test('a label query sees an update into it as a creation and out of it as a destruction', async () => {
      const events = await state.watch({ labels: [[{ key: 'on', op: 'exists' }]], signal: stop.signal })
      await state.create('a', spec('x'))
      await modify(state, 'a', (present) => changed(present, { labels: { on: '' } }))
      await modify(state, 'a', (present) => changed(present, {}, spec('y')))
      await modify(state, 'a', (present) => changed(present, { labels: {} }))
      expect((await take(events, 3)).map(({ type }) => type)).toEqual(['created', 'updated', 'destroyed'])
    })

    test('a watcher that is too slow gets an error: it misses nothing silently', async () => {
      await state.create('a', spec('x'))
      const events = await state.watch({ signal: stop.signal })
      opened.storm('a', 6000)
      let version = 1
      let end = ''
      try {
        for (;;) {
          const { value, done } = await events.next()
          if (done) break
          const seen: Seen = value
          if (seen.type === 'errored') {
            end = 'overrun'
            break
          }
          expect(seen.resource?.metadata.version).toBe(++version)
        }
      } catch (error) {
        end = (error as { reason?: string }).reason ?? String(error)
      }
      expect(end).toBe('overrun')
      expect(version).toBeLessThan(6001)
    })

    test('the store agrees with its model after any sequence of operations', async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(operation, { maxLength: 30 }), async (operations) => {
          const { state: fresh, close } = await open()
          const model = new Model()
          for (const each of operations) {
            const outcome = await refusal(act(fresh, each))
            expect([each, outcome]).toEqual([each, model.act(each)])
          }
          const present = (await fresh.list()).map(({ metadata, spec: { hostname } }) => [
            metadata.id,
            { hostname, version: metadata.version, phase: metadata.phase, owner: metadata.owner, finalizers: [...metadata.finalizers] },
          ])
          expect(present).toEqual([...model.resources].sort(([a], [b]) => (a < b ? -1 : 1)) as never)
          await close()
        }),
        { numRuns: runs(times) },
      )
    }, 60_000)

    test('concurrent writers: every watcher sees each life cycle of each resource complete and in order, and ends at the current state', async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(fc.array(operation, { maxLength: 12 }), { minLength: 2, maxLength: 4 }), async (writers) => {
          const { state: fresh, close } = await open()
          const quiet = new AbortController()
          const watchers = await Promise.all([{}, { bootstrap: true }].map((begin) => fresh.watch({ ...begin, signal: quiet.signal })))
          const readings = watchers.map(replay)
          await Promise.all(
            writers.map(async (operations) => {
              for (const each of operations) await refusal(act(fresh, each))
            }),
          )
          // A final event that every watcher must see.
          await fresh.create('end', spec('end'))
          const replayed = await Promise.all(readings)
          const present = (await fresh.list()).map(({ metadata }) => `${metadata.id}@${metadata.version}`)
          for (const table of replayed) expect(table).toEqual(present)
          quiet.abort()
          await close()
        }),
        { numRuns: runs(times) },
      )
    }, 60_000)
  })
}

const ids = fc.constantFrom('a', 'b', 'c')
const owners = fc.constantFrom('', 'me')
const holders = fc.constantFrom('h', 'i')

interface Operation {
  readonly verb: 'create' | 'write' | 'teardown' | 'destroy' | 'hold' | 'release'
  readonly id: string
  readonly owner: string
  readonly holder: string
  readonly value: string
}

const operation: fc.Arbitrary<Operation> = fc.record({
  verb: fc.constantFrom('create', 'write', 'teardown', 'destroy', 'hold', 'release'),
  id: ids,
  owner: owners,
  holder: holders,
  value: fc.constantFrom('x', 'y'),
})

async function act(state: State, { verb, id, owner, holder, value }: Operation): Promise<unknown> {
  if (verb === 'create') return state.create(id, spec(value), { owner })
  if (verb === 'destroy') return state.destroy(id, { owner })
  const present = await state.get(id)
  if (!present) throw new StoreError('not-found', 'gone')
  const { finalizers } = present.metadata
  if (verb === 'write') return state.update(changed(present, {}, spec(value)), { owner, expectedPhase: 'running' })
  if (verb === 'teardown') return state.update(changed(present, { phase: 'tearingDown' }), { owner })
  if (verb === 'hold')
    return state.update(changed(present, { finalizers: [...finalizers.filter((each) => each !== holder), holder] }), { owner })
  return state.update(changed(present, { finalizers: finalizers.filter((each) => each !== holder) }), { owner })
}

interface Modelled {
  hostname: string
  version: number
  phase: Phase
  owner: string
  finalizers: string[]
}

/** A minimal model of the store. */
class Model {
  readonly resources = new Map<string, Modelled>()

  act({ verb, id, owner, holder, value }: Operation): StatusName {
    const found = this.resources.get(id)
    if (verb === 'create') {
      if (found) return 'AlreadyExists'
      this.resources.set(id, { hostname: value, version: 1, phase: 'running', owner, finalizers: [] })
      return 'OK'
    }
    if (!found) return 'NotFound'
    if (found.owner !== owner) return 'PermissionDenied'
    if (verb === 'destroy') {
      if (found.finalizers.length > 0) return 'FailedPrecondition'
      this.resources.delete(id)
      return 'OK'
    }
    const next = { ...found, finalizers: found.finalizers.filter((each) => each !== holder) }
    if (verb === 'write') {
      if (found.phase !== 'running') return 'InvalidArgument'
      Object.assign(next, { hostname: value, finalizers: found.finalizers })
    }
    if (verb === 'teardown') Object.assign(next, { phase: 'tearingDown', finalizers: found.finalizers })
    if (verb === 'hold') next.finalizers.push(holder)
    this.resources.set(id, { ...next, version: found.version + 1 })
    return 'OK'
  }
}

/** Replays a watcher's events on an empty table, and checks that no life cycle of a resource has a gap. */
async function replay(events: AsyncIterableIterator<Seen>): Promise<string[]> {
  const table = new Map<string, number>()
  for await (const { type, resource, old } of events) {
    if (!resource) continue
    const { id, version, finalizers } = resource.metadata
    if (type === 'created') {
      expect(table.has(id)).toBe(false)
      table.set(id, version)
    } else if (type === 'updated') {
      expect([old?.metadata.version, version]).toEqual([table.get(id)!, table.get(id)! + 1])
      table.set(id, version)
    } else if (type === 'destroyed') {
      expect([table.get(id), finalizers.length]).toEqual([version, 0])
      table.delete(id)
    }
    if (id === 'end') break
  }
  return [...table].map(([id, version]) => `${id}@${version}`).sort()
}
