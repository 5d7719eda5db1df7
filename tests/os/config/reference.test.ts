import { describe, expect, test } from 'bun:test'
import { parseAllDocuments } from 'yaml'
import { hintsOf, type JsonSchema } from '../../../src/document/json-schema.ts'
import { documentKinds } from '../../../src/os/config/kinds.ts'
import { configSchema, keys } from '../../../src/os/config/reference.ts'
import { config } from './machine.ts'

const definitions = configSchema().$defs as Record<string, any>

/** A JSON schema checker of the keywords in use; returns what is wrong, by path. */
function check(schema: any, value: unknown, path = ''): string[] {
  if (schema.anyOf) return schema.anyOf.some((option: unknown) => check(option, value).length === 0) ? [] : [`${path}: fits none`]
  if (schema.const !== undefined && value !== schema.const) return [`${path}: not ${schema.const}`]
  if (schema.enum && !schema.enum.includes(value)) return [`${path}: not one of ${schema.enum}`]
  if (schema.type === 'string') {
    if (typeof value !== 'string') return [`${path}: no text`]
    return schema.pattern && !new RegExp(schema.pattern).test(value) ? [`${path}: ${value} does not fit ${schema.pattern}`] : []
  }
  if (schema.type === 'boolean') return typeof value === 'boolean' ? [] : [`${path}: not true or false`]
  if (schema.type === 'integer') return Number.isInteger(value) ? [] : [`${path}: no number`]
  if (schema.type === 'array')
    return Array.isArray(value) ? value.flatMap((item, index) => check(schema.items, item, `${path}[${index}]`)) : [`${path}: no list`]
  if (schema.type !== 'object') return []
  if (typeof value !== 'object' || value === null) return [`${path}: no map`]
  const missing = (schema.required ?? []).filter((key: string) => !(key in value)).map((key: string) => `${path}.${key}: missing`)
  return [
    ...missing,
    ...Object.entries(value).flatMap(([key, item]) => {
      const known = schema.properties?.[key] ?? schema.additionalProperties
      return known ? check(known, item, `${path}.${key}`) : [`${path}.${key}: unknown`]
    }),
  ]
}

describe('the JSON schema', () => {
  const table = Bun.file(`${import.meta.dir}/contract/config-schema.tsv`).text()
  const rows = async () =>
    (await table)
      .split('\n')
      .slice(1)
      .filter(Boolean)
      .map((line) => {
        const [kind = '', , path = '', type = '', values = '', pattern = '', needed = '', , shown = ''] = line.split('\t')
        return { kind, path, type, values, pattern, needed, shown }
      })

  /** Follows a path of the table: the parent and the schema at it. */
  function follow(kind: string, path: string): { at?: any; parent?: any; key: string } {
    let at: any = definitions[kind]
    let parent: any
    let key = ''
    for (const [step] of path.matchAll(/\[\]|\{\w+\}|[^.[\]{}]+/g)) {
      if (at?.anyOf) at = at.anyOf.find((option: any) => (step === '[]' ? option.type === 'array' : option.type === 'object'))
      parent = at
      key = step
      at = step === '[]' ? at?.items : step.startsWith('{') ? at?.additionalProperties : at?.properties?.[step]
    }
    return { at, parent, key }
  }

  test('has every path of the contract with its type, values and form', async () => {
    const wrong: string[] = []
    const typeOf: [RegExp, (schema: any) => boolean][] = [
      [/^(u?int|uint\d+)$/, ({ type }) => type === 'integer'],
      [/^float$/, ({ type }) => type === 'number'],
      [/^bool$/, ({ type }) => type === 'boolean'],
      [/^object/, ({ type }) => type === 'object' || type === undefined],
      [/^list/, ({ type }) => type === 'array'],
      [/^string or list/, (schema) => schema.anyOf?.length === 2],
      [/^any$/, (schema) => schema.type === undefined],
      [/^port-or-range|^file-mode/, ({ type, anyOf }) => type === 'string' || anyOf !== undefined],
      [/./, (schema) => schema.type === 'string' || schema.enum || schema.const !== undefined],
    ]
    for (const { kind, path, type, values, pattern, needed } of await rows()) {
      if (kind === 'v1alpha1' && (path === 'kind' || path === 'apiVersion')) continue
      const { at, parent, key } = follow(kind, path)
      if (!at) wrong.push(`${kind} ${path}: absent`)
      else if (!typeOf.find(([names]) => names.test(type))![1](at)) wrong.push(`${kind} ${path}: ${type} is ${JSON.stringify(at)}`)
      else if (values && at.enum && !Bun.deepEquals(values.split('|').sort(), [...at.enum].sort()))
        wrong.push(`${kind} ${path}: ${at.enum}`)
      // The schema need not repeat what a rule states more exactly.
      else if (pattern && !/hardwareAddr|duidRaw|endpoint$/.test(path) && !at.pattern) wrong.push(`${kind} ${path}: no pattern`)
      else if (needed === 'yes' && !parent.required?.includes(key)) wrong.push(`${kind} ${path}: is not needed`)
    }
    expect(wrong).toEqual([])
  })

  test('needs nothing the contract lets be left out', async () => {
    const needed = new Set((await rows()).filter(({ needed }) => needed === 'yes').map(({ kind, path }) => `${kind} ${path}`))
    const extra = [...documentKinds.values()].flatMap(({ kind, schema }) =>
      [...keys(schema, '')]
        .filter((each) => hintsOf(each.schema).needed && !needed.has(`${kind} ${each.path}`))
        .map(({ path }) => `${kind} ${path}`),
    )
    expect(extra).toEqual([])
  })

  test('takes what we generate, and nothing misspelt', () => {
    for (const type of ['controlplane', 'worker'] as const)
      for (const document of parseAllDocuments(config(type))) {
        const value = document.toJS() as JsonSchema
        expect(check(definitions[(value.kind as string | undefined) ?? 'v1alpha1'], value)).toEqual([])
      }
    expect(check(definitions.v1alpha1, { machine: { kubelett: {} }, cluster: { controlPlane: { endpoint: 5 } } })).toEqual([
      '.machine.kubelett: unknown',
      '.cluster.controlPlane.endpoint: no text',
    ])
    expect(check(definitions.BondConfig, { apiVersion: 'v1alpha1', kind: 'BondConfig', bondMode: 'fast' })).toEqual([
      '.name: missing',
      '.bondMode: not one of balance-rr,active-backup,balance-xor,broadcast,802.3ad,balance-tlb,balance-alb',
    ])
  })
})

test('every key has a description', () => {
  const silent = [...documentKinds.values()].flatMap(({ kind, schema }) =>
    [...keys(schema, '')].filter((each) => !hintsOf(each.schema).description).map(({ path }) => `${kind} ${path}`),
  )
  expect(silent).toEqual([])
})
