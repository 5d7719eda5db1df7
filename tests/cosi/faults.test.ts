/** An exception in a controller, a task or a subscriber ends one round, one task or one call, and nothing else. */
import { afterEach, expect, jest, test } from 'bun:test'
import * as v from 'valibot'
import { defineController, exclusive, type Round, weak } from '../../src/cosi/controller.ts'
import { silent } from '../../src/cosi/log.ts'
import { defineResource } from '../../src/cosi/resource.ts'
import { Runtime } from '../../src/cosi/runtime.ts'
import { Store } from '../../src/cosi/store.ts'

const Lamp = defineResource({ type: 'Lamps.test.dev', namespace: 'test', spec: v.object({ lit: v.boolean() }) })
const Shade = defineResource({ type: 'Shades.test.dev', namespace: 'test', spec: v.object({ dark: v.boolean() }) })

const unhandled: unknown[] = []
process.on('unhandledRejection', (error) => unhandled.push(error))
afterEach(async () => {
  jest.useRealTimers()
  await new Promise(setImmediate)
  expect(unhandled.splice(0)).toEqual([])
})

const broken = () => {
  throw new Error('broken')
}

/** A controller that shades each lamp, with additional behaviour; a second controller watches too. */
async function shading(beside: (round: Round) => void, start?: () => void) {
  jest.useFakeTimers()
  const store = new Store()
  const runtime = new Runtime(store, { log: silent })
  runtime.register(
    defineController({
      name: 'test.Shade',
      inputs: { lamps: weak(Lamp) },
      outputs: { shades: exclusive(Shade) },
      ...(start && { start }),
      reconcile({ lamps, shades, ...round }) {
        beside(round)
        for (const { metadata, spec } of lamps.list()) shades.put(metadata.id, { dark: !spec.lit })
      },
    }),
  )
  runtime.start()
  store.put(Lamp, 'one', { lit: true })
  await runtime.settled()
  const pass = async (ms: number) => {
    jest.advanceTimersByTime(ms)
    await runtime.settled()
  }
  return { store, runtime, pass, shade: () => store.get(Shade, 'one')?.spec.dark }
}

test('a task that throws before its first await is rerun, and its controller continues', async () => {
  let runs = 0
  const { pass, shade, runtime } = await shading(({ background }) =>
    background('watch', () => {
      runs++
      return broken()
    }),
  )
  expect(shade()).toBe(false)
  await Promise.resolve()
  await pass(1000)
  expect(runs).toBeGreaterThan(1)
  runtime.stop()
})

test('a controller whose start throws still runs rounds', async () => {
  const { shade, runtime } = await shading(() => {}, broken)
  expect(shade()).toBe(false)
  runtime.stop()
})

test('a round that throws is retried', async () => {
  let rounds = 0
  const { pass, shade, runtime } = await shading(() => {
    if (++rounds === 1) broken()
  })
  await pass(300)
  expect(shade()).toBe(false)
  runtime.stop()
})

test('a subscriber that throws neither reverts a change nor hides it from other subscribers', () => {
  const failures: unknown[] = []
  const store = new Store({ subscriberFailed: (error) => failures.push(error) })
  const heard: string[] = []
  store.subscribe(Lamp, broken)
  store.subscribe(Lamp, ({ type }) => heard.push(type))
  store.put(Lamp, 'one', { lit: true })
  expect(store.get(Lamp, 'one')?.spec.lit).toBe(true)
  expect(heard).toEqual(['created'])
  expect(failures).toHaveLength(1)
})
