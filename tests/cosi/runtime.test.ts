import { expect, test } from 'bun:test'
import * as v from 'valibot'
import { defineController, exclusive, shared, strong, weak } from '../../src/cosi/controller.ts'
import { silent } from '../../src/cosi/log.ts'
import { merge, strongest } from '../../src/cosi/merge.ts'
import { defineResource } from '../../src/cosi/resource.ts'
import { Runtime } from '../../src/cosi/runtime.ts'
import { Store } from '../../src/cosi/store.ts'
import { transform } from '../../src/cosi/transform.ts'

const A = defineResource({ type: 'As.test.dev', namespace: 'default', spec: v.object({ value: v.number() }) })
const B = defineResource({ type: 'Bs.test.dev', namespace: 'default', spec: v.object({ value: v.number() }) })
const Layered = defineResource({ type: 'Layered.test.dev', namespace: 'net', spec: v.object({ name: v.string(), layer: v.string() }) })

function machine() {
  const store = new Store()
  const runtime = new Runtime(store, { log: silent })
  return { store, runtime }
}

const double = transform({ name: 'test.Double', from: A, to: B, apply: ({ value }) => ({ value: value * 2 }) })

test('a transform follows its input and is destroyed with it', async () => {
  const { store, runtime } = machine()
  runtime.register(double)
  runtime.start()
  store.create(A, 'x', { value: 1 })
  await runtime.settled()
  expect(store.get(B, 'x')?.spec).toEqual({ value: 2 })
  expect(store.get(B, 'x')?.metadata.owner).toBe('test.Double')
  store.destroy(A, 'x')
  await runtime.settled()
  expect(store.get(B, 'x')).toBeUndefined()
})

test('the strongest layer wins, and the weaker one returns when it is removed', async () => {
  const { store, runtime } = machine()
  runtime.register(merge('test.Merge', Layered, strongest))
  runtime.start()
  store.create(Layered, 'default/h', { name: 'weak', layer: 'default' }, { namespace: 'net-config' })
  store.create(Layered, 'configuration/h', { name: 'strong', layer: 'configuration' }, { namespace: 'net-config' })
  await runtime.settled()
  expect(store.get(Layered, 'h')?.spec.name).toBe('strong')
  store.destroy(Layered, 'configuration/h', { namespace: 'net-config' })
  await runtime.settled()
  expect(store.get(Layered, 'h')?.spec.name).toBe('weak')
})

test('a round that throws writes nothing, is logged, and stops no other controller', async () => {
  const { store, runtime } = machine()
  runtime.register(
    double,
    defineController({
      name: 'test.Broken',
      inputs: { a: weak(A) },
      outputs: { out: shared(B, 'elsewhere') },
      reconcile({ out }) {
        out.put('half', { value: 1 })
        throw new Error('no luck')
      },
    }),
  )
  runtime.start()
  store.create(A, 'x', { value: 1 })
  await runtime.settled()
  expect(store.list(B, { namespace: 'elsewhere' })).toEqual([])
  expect(store.get(B, 'x')?.spec.value).toBe(2)
  expect(runtime.controllers().find(({ controller }) => controller.name === 'test.Broken')?.state.lastError?.message).toBe('no luck')
  runtime.stop()
})

test('a missing resource is recorded until a round finds it', async () => {
  const { store, runtime } = machine()
  runtime.register(
    defineController({
      name: 'test.Waits',
      inputs: { a: weak(A), b: weak(B) },
      outputs: {},
      reconcile({ a, b }) {
        if (!a.get('x')) return
        b.list()
      },
    }),
  )
  const missing = () => runtime.controllers()[0]!.state.missing.map(({ type, namespace, id }) => `${namespace}/${type.type}/${id}`)
  runtime.start()
  await runtime.settled()
  expect(missing()).toEqual(['default/As.test.dev/x'])
  store.create(A, 'x', { value: 1 })
  await runtime.settled()
  expect(missing()).toEqual(['default/Bs.test.dev/'])
  store.create(B, 'y', { value: 1 })
  await runtime.settled()
  expect(missing()).toEqual([])
})

test('a task reports a problem while it keeps retrying, and clears it on success', async () => {
  const { store, runtime } = machine()
  let heal = () => {}
  runtime.register(
    defineController({
      name: 'test.Watches',
      inputs: { a: weak(A) },
      outputs: {},
      reconcile: ({ background }) =>
        background('peer', async (signal, _, report) => {
          report(new Error('nobody answers'))
          report(new Error('nobody answers'))
          await new Promise<void>((resolve) => {
            heal = resolve
          })
          report()
          await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
        }),
    }),
  )
  runtime.start()
  await runtime.settled()
  const { troubles } = runtime.controllers()[0]!.state
  expect(troubles.get('peer')).toMatchObject({ message: 'nobody answers', inRow: 2 })
  heal()
  await Bun.sleep(0)
  expect([...troubles]).toEqual([])
  store.create(A, 'x', { value: 1 })
  runtime.stop()
})

test('a strong input is destroyed only after what was derived from it', async () => {
  const { store, runtime } = machine()
  const order: string[] = []
  runtime.register(transform({ name: 'test.Strong', from: A, to: B, strong: true, apply: (spec) => spec }))
  store.subscribe(B, ({ type }) => order.push(`B ${type}`))
  runtime.start()
  store.create(A, 'x', { value: 1 })
  await runtime.settled()
  expect(store.get(A, 'x')?.metadata.finalizers).toEqual(['test.Strong'])
  expect(store.teardown(A, 'x')).toBe(false)
  await runtime.settled()
  expect(store.get(B, 'x')).toBeUndefined()
  store.destroy(A, 'x')
  expect(order).toContain('B destroyed')
})

test('a controller that waits does not block others', async () => {
  const { store, runtime } = machine()
  const slow = Promise.withResolvers<void>()
  runtime.register(double, defineController({ name: 'test.Slow', inputs: { a: weak(A) }, outputs: {}, reconcile: () => slow.promise }))
  runtime.start()
  store.create(A, 'x', { value: 4 })
  const done = await store.until(B, 'x')
  expect(done.spec.value).toBe(8)
  slow.resolve()
  await runtime.settled()
})

test('a background task runs while it is named and is aborted when it is not', async () => {
  const { store, runtime } = machine()
  let aborted = false
  let started = 0
  runtime.register(
    defineController({
      name: 'test.Task',
      inputs: { a: strong(A) },
      outputs: {},
      reconcile({ a, background }) {
        for (const { metadata } of a.list())
          background(metadata.id, (signal) => {
            started++
            return new Promise((resolve) =>
              signal.addEventListener('abort', () => {
                aborted = true
                resolve()
              }),
            )
          })
      },
    }),
  )
  runtime.start()
  store.create(A, 'x', { value: 1 })
  await runtime.settled()
  store.update(A, 'x', { value: 2 })
  await runtime.settled()
  expect([started, aborted]).toEqual([1, false])
  store.teardown(A, 'x')
  await runtime.settled()
  expect(aborted).toBe(true)
})

test('two exclusive owners of one type are refused at start', () => {
  const { runtime } = machine()
  runtime.register(double)
  const rival = defineController({ name: 'test.Rival', inputs: {}, outputs: { b: exclusive(B) }, reconcile() {} })
  expect(() => runtime.register(rival)).toThrow('both write "default/Bs.test.dev"')
})
