import { fullGC } from 'bun:jsc'
import { expect, test } from 'bun:test'
import * as fc from 'fast-check'
import * as v from 'valibot'
import { StoreError } from '../../src/cosi/errors.ts'
import { defineResource } from '../../src/cosi/resource.ts'
import { Store } from '../../src/cosi/store.ts'
import type { StoreEvent } from '../../src/cosi/store-table.ts'

const Thing = defineResource({ type: 'Things.test.dev', namespace: 'default', spec: v.object({ value: v.number() }) })

function refusal(act: () => unknown): string {
  try {
    act()
  } catch (error) {
    if (error instanceof StoreError) return error.reason
    throw error
  }
  return 'none'
}

test('a resource is created at version 1, incremented by each real change', () => {
  const store = new Store()
  expect(store.create(Thing, 'a', { value: 1 }).metadata).toMatchObject({ version: 1, phase: 'running', owner: '' })
  expect(store.update(Thing, 'a', { value: 1 }).metadata.version).toBe(1)
  expect(store.update(Thing, 'a', ({ value }) => ({ value: value + 1 })).metadata.version).toBe(2)
  expect(store.get(Thing, 'a')?.spec).toEqual({ value: 2 })
})

test('the store gives the reason of a refusal', () => {
  const store = new Store()
  store.create(Thing, 'a', { value: 1 }, { owner: 'x' })
  expect(refusal(() => store.create(Thing, 'a', { value: 1 }))).toBe('exists')
  expect(refusal(() => store.update(Thing, 'b', { value: 1 }))).toBe('not-found')
  expect(refusal(() => store.update(Thing, 'a', { value: 2 }))).toBe('owner')
  expect(refusal(() => store.update(Thing, 'a', { value: 2 }, { owner: 'x', version: 7 }))).toBe('conflict')
  expect(refusal(() => store.update(Thing, 'a', { value: 'one' } as never, { owner: 'x' }))).toBe('invalid')
  store.addFinalizer(Thing, 'a', 'holder')
  expect(refusal(() => store.destroy(Thing, 'a', { owner: 'x' }))).toBe('finalizers')
  expect(store.teardown(Thing, 'a', { owner: 'x' })).toBe(false)
  expect(refusal(() => store.update(Thing, 'a', { value: 2 }, { owner: 'x' }))).toBe('phase')
  expect(refusal(() => store.addFinalizer(Thing, 'a', 'late'))).toBe('phase')
  store.removeFinalizer(Thing, 'a', 'holder')
  store.destroy(Thing, 'a', { owner: 'x' })
  expect(store.get(Thing, 'a')).toBeUndefined()
})

test('a label query sees an update into it as a creation and out of it as a destruction', () => {
  const store = new Store()
  const seen: string[] = []
  store.subscribe(Thing, ({ type }) => seen.push(type), { labels: [[{ key: 'on', op: 'exists' }]] })
  store.create(Thing, 'a', { value: 1 })
  store.put(Thing, 'a', { value: 2 }, { labels: { on: '' } })
  store.put(Thing, 'a', { value: 3 }, { labels: { on: '' } })
  store.put(Thing, 'a', { value: 4 })
  expect(seen).toEqual(['created', 'updated', 'destroyed'])
})

test('a watch starts with existing resources, then bootstrapped, then every change in order', async () => {
  const store = new Store()
  store.create(Thing, 'a', { value: 0 })
  const stop = new AbortController()
  const seen: string[] = []
  const reading = (async () => {
    for await (const event of store.watch(Thing, { bootstrap: true, signal: stop.signal })) {
      seen.push(`${event.type} ${event.resource?.spec.value ?? ''}`.trim())
      if (event.resource?.spec.value === 3) stop.abort()
    }
  })()
  await Promise.resolve()
  for (const value of [1, 2, 3]) store.update(Thing, 'a', { value })
  await reading
  expect(seen).toEqual(['created 0', 'bootstrapped', 'updated 1', 'updated 2', 'updated 3'])
})

test('existing resources are listed, and watched first, sorted by id', () => {
  const store = new Store()
  for (const id of ['b', 'c', 'a']) store.create(Thing, id, { value: 0 })
  expect(store.list(Thing).map(({ metadata }) => metadata.id)).toEqual(['a', 'b', 'c'])
  const seen: unknown[] = []
  store.subscribe(Thing, ({ resource }) => seen.push(resource?.metadata.id), { bootstrap: true })
  expect(seen).toEqual(['a', 'b', 'c', undefined])
})

test('a slow watcher does not hold the resources that it had already as events', async () => {
  const store = new Store()
  for (let n = 0; n < 500; n++) store.create(Thing, `a${n}`, { value: n })
  const watch = store.watch(Thing, { bootstrap: true })
  const taken: WeakRef<object>[] = []
  const take = async () => {
    taken.push(new WeakRef((await watch.next()).value!))
  }
  while (taken.length < 499) await take()
  await Bun.sleep(1)
  // A collection of young objects alone leaves those that an earlier one has promoted.
  fullGC()
  expect(taken.filter((event) => event.deref()).length).toBeLessThan(50)
  expect((await watch.next()).value).toMatchObject({ type: 'created', present: true })
  expect((await watch.next()).value).toMatchObject({ type: 'bootstrapped' })
  await watch.return()
})

test('a reader that falls behind gets an error instead of missing events', async () => {
  const store = new Store()
  store.create(Thing, 'a', { value: 0 })
  const watch = store.watch(Thing, { bootstrap: true })
  await watch.next()
  await watch.next()
  const next = watch.next()
  for (let value = 1; value <= 5000; value++) store.update(Thing, 'a', { value })
  expect(
    await next.then(
      () => 'event',
      (error) => error.reason,
    ),
  ).toBe('overrun')
})

test('tail and bookmarks replay the past exactly', () => {
  const store = new Store()
  store.create(Thing, 'a', { value: 0 })
  for (let value = 1; value <= 20; value++) store.update(Thing, 'a', { value })
  const collect = (options: { tail?: number; after?: number }) => {
    const events: StoreEvent<{ value: number }>[] = []
    store.subscribe(Thing, (event) => events.push(event), options)()
    return events
  }
  expect(collect({ tail: 3 }).map(({ resource }) => resource?.spec.value)).toEqual([18, 19, 20])
  const { bookmark } = collect({ tail: 3 })[0]!
  expect(collect({ after: bookmark }).map(({ resource }) => resource?.spec.value)).toEqual([19, 20])
  expect(refusal(() => collect({ after: 9999 }))).toBe('overrun')
})

test('events of any sequence of operations, replayed on an empty table, give the table', () => {
  const operation = fc.record({ id: fc.constantFrom('a', 'b', 'c'), verb: fc.constantFrom('put', 'destroy', 'teardown'), value: fc.nat(3) })
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 60 }), (operations) => {
      const store = new Store()
      const replayed = new Map<string, number>()
      store.subscribe(Thing, (event) => {
        if (event.type === 'destroyed') replayed.delete(event.resource.metadata.id)
        else if (event.resource) replayed.set(event.resource.metadata.id, event.resource.spec.value)
      })
      for (const { id, verb, value } of operations)
        refusal(() =>
          verb === 'put' ? store.put(Thing, id, { value }) : verb === 'destroy' ? store.destroy(Thing, id) : store.teardown(Thing, id),
        )
      expect([...replayed].sort()).toEqual(
        store.list(Thing).map(({ metadata, spec }) => [metadata.id, spec.value] as const as [string, number]),
      )
    }),
  )
})
