/** Controllers, writers and finalizers in random order: the final state is that of a model. */
import { expect, test } from 'bun:test'
import * as fc from 'fast-check'
import * as v from 'valibot'
import { defineController, exclusive, shared, strong, weak } from '../../src/cosi/controller.ts'
import { StoreError } from '../../src/cosi/errors.ts'
import { silent } from '../../src/cosi/log.ts'
import { defineResource } from '../../src/cosi/resource.ts'
import { Runtime } from '../../src/cosi/runtime.ts'
import { Store } from '../../src/cosi/store.ts'
import { transform } from '../../src/cosi/transform.ts'
import { runs } from '../support/runs.ts'

const value = v.object({ value: v.number() })
const A = defineResource({ type: 'As.test.dev', namespace: 'default', spec: value })
const B = defineResource({ type: 'Bs.test.dev', namespace: 'default', spec: value })
const C = defineResource({ type: 'Cs.test.dev', namespace: 'default', spec: value })
const Sum = defineResource({ type: 'Sums.test.dev', namespace: 'default', spec: value })

/** Yields to the event loop a random number of times, so that rounds overlap. */
async function dawdle(turns: number): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await Promise.resolve()
}

const step = fc.oneof(
  fc.record({ verb: fc.constant('put' as const), id: fc.constantFrom('a', 'b', 'c'), value: fc.nat(5) }),
  fc.record({ verb: fc.constantFrom('teardown' as const, 'destroy' as const), id: fc.constantFrom('a', 'b', 'c'), value: fc.constant(0) }),
  fc.record({ verb: fc.constant('pause' as const), id: fc.constant(''), value: fc.nat(12) }),
)

/** Acts as an external owner: destroys resources in teardown as soon as no finalizer is left. */
function refused(act: () => void): boolean {
  try {
    act()
    return false
  } catch (error) {
    if (error instanceof StoreError && ['phase', 'not-found', 'finalizers'].includes(error.reason)) return true
    throw error
  }
}

test('a chain with strong inputs follows its source, and no derived resource outlives its source', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), fc.array(fc.nat(6), { minLength: 3, maxLength: 3 }), async (steps, delays) => {
      const store = new Store()
      const runtime = new Runtime(store, { log: silent })
      runtime.register(
        transform({
          name: 'test.AB',
          from: A,
          to: B,
          strong: true,
          apply: (spec) => dawdle(delays[0]!).then(() => ({ value: spec.value * 2 })),
        }),
        transform({
          name: 'test.BC',
          from: B,
          to: C,
          strong: true,
          apply: (spec) => dawdle(delays[1]!).then(() => ({ value: spec.value + 1 })),
        }),
        defineController({
          name: 'test.Sum',
          inputs: { b: weak(B), c: weak(C) },
          outputs: { sum: exclusive(Sum) },
          async reconcile({ b, c, sum }) {
            const total = [...b.list(), ...c.list()].reduce((all, { spec }) => all + spec.value, 0)
            await dawdle(delays[2]!)
            sum.put('all', { value: total })
          },
        }),
      )
      // As their owner would, destroy resources in teardown that have no finalizer left.
      const bury = () => {
        for (const { metadata } of store.list(A)) if (metadata.phase === 'tearingDown') refused(() => store.destroy(A, metadata.id))
      }
      // A derived resource always has its source: B is destroyed before A, C before B.
      const orphans: string[] = []
      store.subscribe(A, ({ type, resource }) => {
        if (type === 'destroyed' && resource.metadata.finalizers.length === 0 && resource.metadata.version > 1)
          if (store.get(B, resource.metadata.id) && resource.metadata.phase === 'tearingDown') orphans.push(resource.metadata.id)
      })
      runtime.start()
      const model = new Map<string, number>()
      for (const { verb, id, value } of steps) {
        if (verb === 'pause') await dawdle(value)
        bury()
        if (verb === 'put' && !refused(() => store.put(A, id, { value }))) model.set(id, value)
        if (verb === 'teardown' && !refused(() => store.teardown(A, id))) model.delete(id)
        if (verb === 'destroy' && !refused(() => store.destroy(A, id))) model.delete(id)
      }
      for (let turn = 0; turn < 5; turn++) {
        await runtime.settled()
        bury()
      }
      const held = (type: typeof A) => Object.fromEntries(store.list(type).map(({ metadata, spec }) => [metadata.id, spec.value]))
      const wanted = [...model].sort()
      expect(held(A)).toEqual(Object.fromEntries(wanted))
      expect(held(B)).toEqual(Object.fromEntries(wanted.map(([id, value]) => [id, value * 2])))
      expect(held(C)).toEqual(Object.fromEntries(wanted.map(([id, value]) => [id, value * 2 + 1])))
      expect(held(Sum)).toEqual({ all: wanted.reduce((all, [, value]) => all + value * 4 + 1, 0) })
      expect(orphans).toEqual([])
      runtime.stop()
    }),
    { numRuns: runs(150) },
  )
})

test('controllers that share a type, with rounds of different lengths, own exactly what they put', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.nat(8), { minLength: 2, maxLength: 6 }),
      fc.array(fc.nat(3), { maxLength: 20 }),
      async (delays, writes) => {
        const store = new Store()
        const runtime = new Runtime(store, { log: silent })
        for (const [index, delay] of delays.entries())
          runtime.register(
            defineController({
              name: `test.Share${index}`,
              inputs: { a: strong(A) },
              outputs: { out: shared(B) },
              async reconcile({ a, out }) {
                const all = a.list()
                await dawdle(delay)
                for (const { metadata, spec } of all) if (spec.value % 2 === index % 2) out.put(`${index}-${metadata.id}`, spec)
              },
            }),
          )
        runtime.start()
        for (const value of writes) {
          store.put(A, `a${value}`, { value: value + writes.length })
          await dawdle(value)
        }
        await runtime.settled()
        const wanted = delays.flatMap((_, index) =>
          [...new Set(writes)]
            .filter((value) => (value + writes.length) % 2 === index % 2)
            .map((value) => [`${index}-a${value}`, `test.Share${index}`]),
        )
        expect(store.list(B).map(({ metadata }) => [metadata.id, metadata.owner])).toEqual(wanted.sort() as never)
        runtime.stop()
      },
    ),
    { numRuns: runs(100) },
  )
})
