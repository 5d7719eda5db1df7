import { expect, test } from 'bun:test'
import * as v from 'valibot'
import { defineController, destroyReady, exclusive, shared, strong, weak } from '../../src/cosi/controller.ts'
import { silent } from '../../src/cosi/log.ts'
import { defineResource } from '../../src/cosi/resource.ts'
import { Runtime } from '../../src/cosi/runtime.ts'
import { Store } from '../../src/cosi/store.ts'

const Pointer = defineResource({ type: 'Pointers.test.dev', namespace: 'default', spec: v.object({ to: v.string() }) })
const Value = defineResource({ type: 'Values.test.dev', namespace: 'default', spec: v.object({ value: v.number() }) })
const Copy = defineResource({ type: 'Copies.test.dev', namespace: 'default', spec: v.object({ value: v.number() }) })

function machine() {
  const store = new Store()
  return { store, runtime: new Runtime(store, { log: silent, firstPause: 2 }) }
}

/** Copies the value that the pointer names, reading no other. */
const follower = (make: typeof weak, rounds: { count: number }) =>
  defineController({
    name: 'test.Follower',
    inputs: { pointer: weak(Pointer) },
    outputs: { copy: exclusive(Copy) },
    reconcile({ pointer, copy, also }) {
      rounds.count++
      const to = pointer.get('it')?.spec.to
      if (to === undefined) return
      const found = also(make(Value, { id: to })).get(to)
      if (found) copy.put('it', found.spec)
    },
  })

test('an input that is known only at run time wakes its reader as long as it is requested', async () => {
  const { store, runtime } = machine()
  const rounds = { count: 0 }
  runtime.register(follower(weak, rounds))
  runtime.start()
  store.create(Value, 'a', { value: 1 })
  store.create(Pointer, 'it', { to: 'a' })
  await runtime.settled()
  expect(store.get(Copy, 'it')?.spec.value).toBe(1)
  store.update(Value, 'a', { value: 2 })
  await runtime.settled()
  expect(store.get(Copy, 'it')?.spec.value).toBe(2)
  expect(runtime.controllers()[0]!.state.alsoReads.map(({ id }) => id)).toEqual(['a'])
  store.update(Pointer, 'it', { to: 'b' })
  await runtime.settled()
  expect(store.get(Copy, 'it')).toBeUndefined()
  expect(runtime.controllers()[0]!.state.missing).toMatchObject([{ id: 'b' }])
  const before = rounds.count
  store.update(Value, 'a', { value: 3 })
  await runtime.settled()
  expect(rounds.count).toBe(before)
  store.create(Value, 'b', { value: 4 })
  await runtime.settled()
  expect(store.get(Copy, 'it')?.spec.value).toBe(4)
  runtime.stop()
})

test('a strong one is held while it is requested and released afterwards', async () => {
  const { store, runtime } = machine()
  runtime.register(follower(strong, { count: 0 }))
  runtime.start()
  for (const id of ['a', 'b']) store.create(Value, id, { value: 1 })
  store.create(Pointer, 'it', { to: 'a' })
  await runtime.settled()
  const held = () => ['a', 'b'].filter((id) => store.get(Value, id)?.metadata.finalizers.includes('test.Follower'))
  expect(held()).toEqual(['a'])
  store.update(Pointer, 'it', { to: 'b' })
  await runtime.settled()
  expect(held()).toEqual(['b'])
  expect(store.teardown(Value, 'b')).toBe(false)
  await runtime.settled()
  expect(store.get(Copy, 'it')).toBeUndefined()
  expect(held()).toEqual([])
  store.destroy(Value, 'b')
  runtime.stop()
})

test('a destroy-ready resource is visible once no finalizer is left, and not before', async () => {
  const { store, runtime } = machine()
  const seen: string[][] = []
  runtime.register(
    defineController({
      name: 'test.Undertaker',
      inputs: { ready: destroyReady(Value) },
      outputs: {},
      reconcile: ({ ready }) => void seen.push(ready.list().map(({ metadata }) => metadata.id)),
    }),
  )
  runtime.start()
  store.create(Value, 'a', { value: 1 })
  store.addFinalizer(Value, 'a', 'holder')
  store.teardown(Value, 'a')
  await runtime.settled()
  expect(seen).toEqual([[]])
  store.removeFinalizer(Value, 'a', 'holder')
  await runtime.settled()
  expect(seen).toEqual([[], ['a']])
  runtime.stop()
})

test('a controller whose start throws still runs its rounds, and so do all others', async () => {
  const { store, runtime } = machine()
  const ran: string[] = []
  const make = (name: string, start?: () => void) =>
    defineController({ name, inputs: { a: weak(Value) }, outputs: {}, ...(start && { start }), reconcile: () => void ran.push(name) })
  runtime.register(
    make('test.First', () => {
      throw new Error('no such socket')
    }),
    make('test.Second'),
  )
  runtime.start()
  await runtime.settled()
  expect(ran).toEqual(['test.First', 'test.Second'])
  expect(store.all()).toEqual([])
  runtime.stop()
})

test('a start that throws is tried until it succeeds, and the controller runs then', async () => {
  const { runtime } = machine()
  const { promise: again, resolve } = Promise.withResolvers<void>()
  let starts = 0
  const seen: number[] = []
  runtime.register(
    defineController({
      name: 'test.Serves',
      inputs: {},
      outputs: {},
      start() {
        if (++starts < 3) throw new Error('address in use')
      },
      reconcile() {
        seen.push(starts)
        if (starts === 3) resolve()
      },
    }),
  )
  runtime.start()
  await again
  expect(seen).toEqual([1, 2, 3])
  expect(runtime.controllers()[0]?.state).toMatchObject({ failures: 2 })
  await runtime.settled()
  runtime.stop()
})

test('a controller that always throws affects no other, and its retries are delayed more and more', async () => {
  const { store, runtime } = machine()
  const pauses: string[] = []
  const log = {
    ...silent,
    warn: (_: string, fields?: Record<string, unknown>) => void pauses.push(String(fields?.retry_in)),
    with: () => log,
  }
  const logging = new Runtime(store, { log })
  for (const thrown of [new Error('x'), 'text', undefined, new TypeError('y')])
    logging.register(
      defineController({
        name: `test.Throws ${String(thrown)}`,
        inputs: { a: weak(Value) },
        outputs: {},
        reconcile: () => {
          throw thrown
        },
      }),
    )
  logging.register(
    defineController({
      name: 'test.Sound',
      inputs: { a: weak(Value) },
      outputs: { copy: exclusive(Copy) },
      reconcile({ a, copy }) {
        for (const { metadata, spec } of a.list()) copy.put(metadata.id, spec)
      },
    }),
  )
  logging.start()
  for (let value = 0; value < 10; value++) {
    store.put(Value, 'a', { value })
    await logging.settled()
  }
  expect(store.get(Copy, 'a')?.spec.value).toBe(9)
  const waited = [...new Set(pauses)].map((pause) => Number.parseInt(pause, 10))
  expect(waited).toEqual([250, 500, 1000, 2000, 4000, 8000, 16000, 32000, 60000])
  logging.stop()
  runtime.stop()
})

test('a round that would change a resource of another owner changes nothing', async () => {
  const { store, runtime } = machine()
  store.create(Copy, 'theirs', { value: 0 }, { owner: 'test.Other' })
  runtime.register(
    defineController({
      name: 'test.Greedy',
      inputs: {},
      outputs: { copy: shared(Copy) },
      reconcile({ copy }) {
        copy.put('mine', { value: 1 })
        copy.put('theirs', { value: 1 })
      },
    }),
  )
  runtime.start()
  await runtime.settled()
  expect(store.list(Copy).map(({ metadata, spec }) => [metadata.id, spec.value])).toEqual([['theirs', 0]])
  expect(runtime.controllers()[0]!.state.lastError?.message).toContain('owned by "test.Other", not by "test.Greedy"')
  runtime.stop()
})
