/** Every kind of resource against the contract, both ways: names, aliases, columns, sensitivity, and the keys of its spec. */
import { describe, expect, test } from 'bun:test'
import * as v from 'valibot'
import { allAliases, Namespace, ResourceDefinition } from '../../src/cosi/meta.ts'
import type { ResourceType } from '../../src/cosi/resource.ts'
import { Store } from '../../src/cosi/store.ts'
import { namespaces } from '../../src/os/namespaces.ts'
import { areas } from '../../src/programs/init/areas.ts'
import { specFields } from '../../src/rpc/resource-shapes.ts'
import { sampleSpec } from '../interop/samples.ts'
import { specPaths } from '../support/spec-paths.ts'

const contract = `${import.meta.dir}/../proto/contract`
const rows = async (name: string) =>
  (await Bun.file(`${contract}/${name}`).text())
    .split('\n')
    .slice(1)
    .filter(Boolean)
    .map((line) => line.split('\t'))

const table = await rows('resources.tsv')
const keys = await rows('resource-spec-yaml.tsv')
const declared = new Map<string, ResourceType>(
  [Namespace, ResourceDefinition, ...areas.flatMap(({ resources }) => resources)]
    // Kinds of our own are nothing the contract knows.
    .filter(({ type }) => !type.endsWith('.ichor.dev'))
    .map((type) => [type.type, type as ResourceType]),
)

test('the kinds are those of the contract, and no others', () => {
  expect([...declared.keys()].sort()).toEqual(table.map(([type]) => type!).sort())
})

describe('a kind is as the contract has it:', () => {
  for (const [type = '', namespace, , aliases = '', displayType, sensitivity, columns = ''] of table)
    test(type, () => {
      const found = declared.get(type)!
      expect({
        namespace: found.namespace,
        displayType: found.displayType,
        sensitive: found.sensitive,
        aliases: allAliases(found).toSorted(),
        columns: Object.entries(found.columns).map(([name, path]) => `${name}=${path}`),
      }).toEqual({
        namespace: namespace!,
        displayType: displayType!,
        sensitive: sensitivity === 'sensitive',
        aliases: [...new Set(aliases.split(',').filter(Boolean))].toSorted(),
        columns: columns === '' ? [] : columns.split(';'),
      })
    })
})

test('a kind whose spec is a string of YAML has the annotation by which clients recognize it, and no other does', () => {
  const strings = keys.filter(([, path, form = '']) => path === '' && form.startsWith('scalar string')).map(([type]) => type)
  expect(strings).not.toEqual([])
  for (const [name, type] of declared) {
    const store = new Store()
    store.register(type)
    const annotations: Record<string, string> = strings.includes(name) ? { 'talos.dev/yaml-spec': '1' } : {}
    const id = 'one'
    const spec = strings.includes(name) ? 'version: v1alpha1\n' : sampleSpec(name)
    if (shownOnly.has(name) || !v.is(type.schema, spec)) continue
    store.put(type, id, spec)
    expect({ name, annotations: store.get(type, id)?.metadata.annotations }).toEqual({ name, annotations })
    store.put(type, id, spec, { annotations: { own: 'x' }, labels: { a: 'b' } })
    expect({ name, annotations: store.get(type, id)?.metadata.annotations }).toEqual({ name, annotations: { ...annotations, own: 'x' } })
  }
})

test('every namespace that a kind lives in is described', () => {
  const lived = new Set([...declared.values()].map(({ namespace }) => namespace))
  expect([...lived].filter((namespace) => !(namespace in namespaces))).toEqual([])
})

/** The contract has no keys for it: what it holds is known from recordings. */
const shownOnly = new Set(['DNSUpstreams.net.talos.dev'])

const plain = (path: string) => path.replaceAll(/\{\w+\}/g, '{}')

test('every key of every spec is declared, and no other', () => {
  const wanted = new Map<string, Set<string>>()
  for (const [type = '', path = ''] of keys) {
    const set = wanted.get(type) ?? new Set<string>()
    wanted.set(type, set)
    if (path !== '' && !path.startsWith('(')) set.add(plain(path))
  }
  const wrong: string[] = []
  for (const [type, { schema }] of declared) {
    if (shownOnly.has(type)) continue
    const table = wanted.get(type) ?? new Set()
    const own = new Set([...specPaths(schema)].map(plain))
    // Lists and maps have a row of their own only where their items are values.
    const within = (paths: ReadonlySet<string>, path: string) =>
      [...paths].some((each) => each === path || each.startsWith(`${path}.`) || each.startsWith(`${path}[`) || each.startsWith(`${path}{`))
    for (const path of table) if (!within(own, path.replace(/(\[\]|\{\})+$/, ''))) wrong.push(`${type} ${path}: is not declared`)
    // A certificate and its key are one row of the table.
    for (const path of own) if (!within(table, path) && !/\.(crt|key)$/.test(path)) wrong.push(`${type} ${path}: is not in the contract`)
  }
  expect(wrong).toEqual([])
})

describe('a spec with a value in every key is taken by the kind:', () => {
  for (const [type, { schema }] of declared)
    test(type, () => {
      if (!specFields(type) || shownOnly.has(type)) return
      const result = v.safeParse(schema, sampleSpec(type))
      expect(result.issues?.map((issue) => `${v.getDotPath(issue)}: ${issue.message}`) ?? []).toEqual([])
    })
})
