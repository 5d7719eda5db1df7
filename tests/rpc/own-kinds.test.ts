/** How kinds that only Ichor has appear on the wire, as docs/contributing.md describes it. */
import { expect, test } from 'bun:test'
import * as v from 'valibot'
import { defineResource } from '../../src/cosi/resource.ts'
import { Store } from '../../src/cosi/store.ts'
import { areas } from '../../src/programs/init/areas.ts'
import { decode, encode } from '../../src/rpc/codec.ts'
import type { cosi } from '../../src/rpc/messages.ts'
import { toMessage } from '../../src/rpc/resource-message.ts'
import { fromMessage } from '../../src/rpc/resource-of-message.ts'
import { specFields } from '../../src/rpc/resource-shapes.ts'
import { messageType } from '../../src/rpc/schema.ts'

const own = areas.flatMap(({ resources }) => resources).filter(({ type }) => type.endsWith('.ichor.dev'))

test('they have no message in the table of specs', () => {
  expect(own.length).toBeGreaterThan(4)
  expect(own.filter(({ type }) => specFields(type)).map(({ type }) => type)).toEqual([])
})

test('their spec is YAML with the keys of the schema in its order, and an empty message', () => {
  const Greeting = defineResource({
    type: 'Greetings.hello.ichor.dev',
    namespace: 'runtime',
    spec: v.object({ text: v.string(), minutes: v.number(), of: v.array(v.string()) }),
  })
  const store = new Store()
  store.put(Greeting, 'node', { of: ['one'], minutes: 3, text: 'Hello: you' })
  const message = toMessage(store.get(Greeting, 'node')!)
  const { spec, metadata } = message
  expect(metadata).toMatchObject({ type: 'Greetings.hello.ichor.dev', namespace: 'runtime', id: 'node', version: '1' })
  expect(spec?.protoSpec).toHaveLength(0)
  expect(spec?.yamlSpec).toBe('text: "Hello: you"\nminutes: 3\nof:\n    - one\n')
  const shape = messageType('cosi.resource.Resource')
  expect(fromMessage(decode(shape, encode(shape, message)) as cosi.resource.Resource).spec).toEqual({})
})
