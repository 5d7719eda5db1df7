import { expect, test } from 'bun:test'
import * as v from 'valibot'
import { type Controller, defineController, exclusive, weak } from '../../src/cosi/controller.ts'
import { onlyComputes, rehearse } from '../../src/cosi/rehearse.ts'
import { defineResource } from '../../src/cosi/resource.ts'
import { Store } from '../../src/cosi/store.ts'

const spec = v.object({ value: v.number() })
const A = defineResource({ type: 'As.test.dev', namespace: 'default', spec })
const B = defineResource({ type: 'Bs.test.dev', namespace: 'default', spec })
const C = defineResource({ type: 'Cs.test.dev', namespace: 'default', spec })
const D = defineResource({ type: 'DStatuses.test.dev', namespace: 'default', spec })

const chain = (name: string, from: typeof A, to: typeof A, act = () => {}) =>
  defineController({
    name,
    effects: 'none',
    inputs: { from: weak(from) },
    outputs: { to: exclusive(to) },
    reconcile({ from, to, background }) {
      background('never', async () => act())
      for (const { metadata, spec } of from.list()) to.put(metadata.id, { value: Math.min(spec.value, 2) })
    },
  })

/** The controller without its declaration that it only computes. */
const acting = ({ effects: _, ...controller }: Controller): Controller => controller

test('the consequences of a change are computed on a copy, through several controllers, without side effects', async () => {
  const store = new Store()
  store.register(A, B, C, D)
  const done: string[] = []
  const controllers = [
    chain('one', A, B, () => done.push('one')),
    chain('two', B, C),
    acting(chain('status', C, D, () => done.push('status'))),
  ]
  store.put(A, 'kept', { value: 1 })
  store.put(A, 'changed', { value: 1 })
  store.put(A, 'gone', { value: 1 })
  const consequences = await rehearse(store, controllers, [A], (scratch) => {
    scratch.put(A, 'changed', { value: 2 })
    scratch.put(A, 'new', { value: 3 })
    scratch.destroy(A, 'gone')
  })
  expect(consequences.map(({ what, type, id, owner }) => `${what} ${type.displayType}/${id} by ${owner}`)).toEqual([
    'updated B/changed by one',
    'removed B/gone by one',
    'created B/new by one',
    'updated C/changed by two',
    'removed C/gone by two',
    'created C/new by two',
  ])
  expect([done, store.list(B), store.get(A, 'changed')?.spec]).toEqual([[], [], { value: 1 }])
})

test('a controller that does not declare that it only computes is left out', async () => {
  const other = acting(chain('acting', A, B))
  expect([chain('one', A, B), other].map(onlyComputes)).toEqual([true, false])
  const store = new Store()
  expect(await rehearse(store, [other], [A], (copy) => copy.create(A, 'new', { value: 1 }))).toEqual([])
})
