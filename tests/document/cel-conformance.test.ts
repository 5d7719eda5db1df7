/**
 * The public conformance vectors of the Common Expression Language (github.com/google/cel-spec), as the package
 * @bufbuild/cel-spec ships them. cel-conformance.tsv lists by name the vectors that fail, and why.
 */
import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { tests } from '@bufbuild/cel-spec/testdata/conformance.js'
import { UnsignedInt } from '@marcbachmann/cel-js/evaluator'
import { CelEnvironment } from '../../src/document/cel/environment.ts'

/** Suites of the language itself; the others are about protocol buffers as values, extensions and partial evaluation. */
const suites = [
  'basic',
  'comparisons',
  'conversions',
  'fields',
  'fp_math',
  'integer_math',
  'lists',
  'logic',
  'macros',
  'parse',
  'plumbing',
  'string',
]

/** The JSON form of protocol buffer messages. */
type Json = any

interface Vector {
  name: string
  expr: string
  typeEnv?: Json[]
  bindings?: Record<string, { value: Json }>
  container?: string
  value?: Json
  typedResult?: Json
  evalError?: Json
  disableCheck?: boolean
  checkOnly?: boolean
}

/** Vectors by suite, section and name. */
const vectors = new Map<string, Vector>()
for (const suite of tests.suites ?? [])
  for (const section of suite.suites ?? [])
    for (const { original } of section.tests ?? [])
      if (suites.includes(suite.name)) vectors.set(`${suite.name}/${section.name}/${original.name}`, original as unknown as Vector)

/** Expressions never hold messages: a literal of one is a name before a brace. */
const aboutMessages = ({ expr, typeEnv = [], container }: Vector) =>
  /[A-Z]\w+\s*(?:\/\/.*\s*)?\{/.test(expr) || container !== undefined || typeEnv.some(({ ident }) => ident?.type?.messageType)

const exceptions = new Map(
  readFileSync(join(import.meta.dir, 'cel-conformance.tsv'), 'utf8')
    .split('\n')
    .filter((line) => line && !line.startsWith('#'))
    .map((line) => line.split('\t') as [string, string]),
)

const primitives: Record<string, string> = {
  INT64: 'int',
  UINT64: 'uint',
  STRING: 'string',
  BOOL: 'bool',
  DOUBLE: 'double',
  BYTES: 'bytes',
}

function typeOf(type: Json): string {
  if (type?.primitive) return primitives[type.primitive]!
  if (type?.wellKnown === 'TIMESTAMP') return 'google.protobuf.Timestamp'
  if (type?.wellKnown === 'DURATION') return 'google.protobuf.Duration'
  if (type?.listType) return `list<${typeOf(type.listType.elemType)}>`
  if (type?.mapType) return `map<${typeOf(type.mapType.keyType)}, ${typeOf(type.mapType.valueType)}>`
  return 'dyn'
}

/** A value of the vectors as the library has it. */
function celValueOf(value: Json): unknown {
  const [kind = ''] = Object.keys(value)
  const content = value[kind]
  switch (kind) {
    case 'int64Value':
      return BigInt(content)
    case 'uint64Value':
      return new UnsignedInt(BigInt(content))
    case 'doubleValue':
      return Number(content)
    case 'bytesValue':
      return new Uint8Array(Buffer.from(content, 'base64'))
    case 'listValue':
      return (content.values ?? []).map(celValueOf)
    case 'mapValue':
      return new Map((content.entries ?? []).map((entry: Json) => [celValueOf(entry.key), celValueOf(entry.value)]))
    case 'typeValue':
      return { type: content }
    case 'objectValue':
      return { text: content.value }
    default:
      return kind === 'nullValue' ? null : content
  }
}

/** A value as text that names its type. */
function shown(value: unknown): string {
  if (value instanceof UnsignedInt) return `${value.value}u`
  if (typeof value === 'number') return `double ${value === 0 ? 0 : value}`
  if (value instanceof Uint8Array) return `bytes ${Buffer.from(value).toString('hex')}`
  if (Array.isArray(value)) return `[${value.map(shown).join()}]`
  if (value instanceof Map) return `{${[...value].map((pair) => pair.map(shown).join(':')).sort()}}`
  if (value instanceof Date) return value.toISOString().replace('.000Z', 'Z')
  if (typeof value !== 'object' || value === null) return `${typeof value} ${String(value)}`
  if ('type' in value) return `type ${value.type}`
  if ('text' in value) return String(value.text)
  if (value.constructor.name === 'Type') return `type ${(value as unknown as { name: string }).name}`
  if (value.constructor === Object) return shown(new Map(Object.entries(value)))
  return String(value)
}

/** Environments by the variables they declare. */
const environments = new Map<string, CelEnvironment>()
function environmentOf(variables: Record<string, string>): CelEnvironment {
  const key = JSON.stringify(variables)
  const environment = environments.get(key) ?? new CelEnvironment({ variables })
  environments.set(key, environment)
  return environment
}

function outcome({ expr, typeEnv = [], bindings = {}, checkOnly }: Vector): string {
  const declared = typeEnv.filter(({ ident }) => ident).map(({ name, ident }) => [name, typeOf(ident.type)])
  const variables = { ...Object.fromEntries(Object.keys(bindings).map((name) => [name, 'dyn'])), ...Object.fromEntries(declared) }
  const values = Object.fromEntries(Object.entries(bindings).map(([name, { value }]) => [name, celValueOf(value)]))
  try {
    const program = environmentOf(variables).compile(expr, 'dyn')
    return checkOnly ? 'checked' : shown(program(values))
  } catch (error) {
    return `error: ${(error as Error).message}`
  }
}

function expected({ value, typedResult, evalError, checkOnly }: Vector): string {
  if (checkOnly) return 'checked'
  if (evalError) return 'error'
  const given = value ?? typedResult?.result
  return given ? shown(celValueOf(given)) : shown(true)
}

describe('the conformance vectors of the language', () => {
  const claimed = [...vectors].filter(([, vector]) => !aboutMessages(vector))
  const failed = claimed.flatMap(([id, vector]) => {
    const [is, wanted] = [outcome(vector), expected(vector)]
    return is === wanted || (wanted === 'error' && is.startsWith('error')) ? [] : [`${id}\t${is}, not ${wanted}: ${vector.expr}`]
  })

  test('are those of the supported suites', () => {
    expect(claimed.length).toBeGreaterThan(1000)
  })

  test('pass, except for the listed exceptions', () => {
    expect(failed.filter((line) => !exceptions.has(line.replace(/\t.*/s, '')))).toEqual([])
  })

  test('need every exception', () => {
    const names = new Set(failed.map((line) => line.replace(/\t.*/s, '')))
    expect([...exceptions.keys()].filter((name) => !names.has(name))).toEqual([])
  })
})
