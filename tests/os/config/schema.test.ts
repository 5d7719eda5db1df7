import { expect, test } from 'bun:test'
import { unwrap } from '../../../src/document/shape.ts'
import { documentKinds } from '../../../src/os/config/kinds.ts'

interface Row {
  kind: string
  path: string
  type: string
  words: string
}

const text = await Bun.file(`${import.meta.dir}/contract/config-schema.tsv`).text()
const rows = text
  .split('\n')
  .slice(1)
  .filter((line) => line !== '')
  .map((line): Row => {
    const [kind = '', , path = '', type = '', words = ''] = line.split('\t')
    return { kind, path, type, words }
  })

/** The kind a table row means; one document is called otherwise than its Go type. */
const kindOf = (row: Row) => documentKinds.get(row.kind)

/** Follows a path of the table into a schema: `a.b[].c{string}`. */
function follow(schema: unknown, path: string): any {
  let at: ReturnType<typeof unwrap> | undefined = unwrap(schema)
  for (const [step] of path.matchAll(/\[\]|\{\w+\}|[^.[\]{}]+/g)) {
    if (step === '[]') at = at?.type === 'array' ? unwrap(at.item) : undefined
    else if (step.startsWith('{')) at = at?.value && unwrap(at.value)
    else at = at?.entries?.[step] && unwrap(at.entries[step])
    if (!at) return undefined
  }
  return at
}

function fits(type: string, schema: any): boolean {
  if (/^(u?int|uint\d+|float)$/.test(type)) return schema.type === 'number'
  if (type === 'bool') return schema.type === 'boolean'
  if (type.startsWith('object')) return ['object', 'record', 'unknown'].includes(schema.type)
  if (type.startsWith('list')) return schema.type === 'array'
  if (type === 'string or list of string') return schema.type === 'union'
  if (type === 'any') return schema.type === 'unknown'
  return ['string', 'picklist', 'literal'].includes(schema.type)
}

test('every kind of document of the contract is declared, and no other', () => {
  const wanted = new Set(rows.map(({ kind }) => kind))
  expect([...documentKinds.keys()].toSorted()).toEqual([...wanted].toSorted())
})

test('every path of the contract exists with its type', () => {
  const wrong: string[] = []
  for (const row of rows) {
    if (row.kind !== 'v1alpha1' && (row.path === 'apiVersion' || row.path === 'kind')) continue
    const found = follow(kindOf(row)?.schema, row.path)
    if (!found || !fits(row.type, found)) wrong.push(`${row.kind} ${row.path}: ${row.type}, not ${found?.type ?? 'there'}`)
  }
  expect(wrong).toEqual([])
})

test('every enumeration of the contract has its words', () => {
  const wrong: string[] = []
  for (const row of rows) {
    const found = follow(kindOf(row)?.schema, row.path)
    if (!row.words || row.path === 'kind' || row.path === 'apiVersion' || found?.type !== 'picklist') continue
    const words = row.words.split('|')
    if (!Bun.deepEquals(words.toSorted(), found.options.toSorted())) wrong.push(`${row.kind} ${row.path}: ${found.options}`)
  }
  expect(wrong).toEqual([])
})

test('nothing is declared that the contract does not have', () => {
  const known = new Map<string, Set<string>>()
  for (const row of rows) {
    const kind = kindOf(row)!.kind
    const set = known.get(kind) ?? new Set()
    known.set(kind, set.add(row.path))
  }
  const extra: string[] = []
  const walk = (schema: unknown, path: string, kind: string) => {
    const inner = unwrap(schema)
    for (const [key, value] of Object.entries(inner.entries ?? {})) {
      const at = path ? `${path}.${key}` : key
      const all = [...known.get(kind)!]
      if (!all.some((each) => each === at || each.startsWith(`${at}[`) || each.startsWith(`${at}{`) || each.startsWith(`${at}.`)))
        extra.push(`${kind} ${at}`)
      walk(value, at, kind)
    }
    if (inner.type === 'array') walk(inner.item, `${path}[]`, kind)
    if (inner.type === 'record' && unwrap(inner.value).type !== 'unknown') walk(inner.value, `${path}{string}`, kind)
  }
  for (const kind of documentKinds.values()) walk(kind.schema, '', kind.kind)
  // The disk to install on is picked by an expression too, as that of a volume is.
  const own = ['v1alpha1 machine.install.diskSelector.match']
  // pairs of certificate and key are one row in the table
  expect(extra.filter((path) => !/\.(crt|key)$/.test(path))).toEqual(own)
})
