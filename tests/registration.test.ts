/**
 * What is declared is registered. Each test compares the declarations in the source with what the program lists, and names
 * what is missing and where it belongs.
 */
import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { Glob } from 'bun'
import { allAliases, Namespace, ResourceDefinition } from '../src/cosi/meta.ts'
import type { AnyResourceType } from '../src/cosi/resource.ts'
import { documentKinds } from '../src/os/config/kinds.ts'
import { namespaces } from '../src/os/namespaces.ts'
import { areas } from '../src/programs/init/areas.ts'
import { servedMethods } from './os/served-methods.ts'
import { unstartedMachine } from './os/unstarted-machine.ts'
import { specPaths } from './support/spec-paths.ts'

const source = join(import.meta.dir, '../src')
const files = [...new Glob('**/*.ts').scanSync(source)].filter((path) => !path.endsWith('.d.ts')).sort()
const texts = new Map(files.map((path) => [path, readFileSync(join(source, path), 'utf8')]))
const areaFiles = files.filter((path) => path.startsWith('os/'))

const modes = ['container', 'metal'] as const
const registered: AnyResourceType[] = [Namespace, ResourceDefinition, ...areas.flatMap(({ resources }) => resources)]
const own = registered.filter(({ type }) => type.endsWith('.ichor.dev'))

interface Declaration {
  readonly name: string
  readonly path: string
}

/** Every call that `pattern` matches in an area; its first group is the name, or a constant of the file that holds it. */
function declarations(pattern: RegExp): Declaration[] {
  return areaFiles.flatMap((path) => {
    const text = texts.get(path) ?? ''
    return [...text.matchAll(pattern)].map(([call, name = '']) => {
      const literal = /^'(.*)'$/.exec(name) ?? new RegExp(`const ${name || '-'} = '([^']+)'`).exec(text)
      return { name: literal?.[1] ?? `${call}: its name is no literal`, path }
    })
  })
}

/** The declarations that are not registered, each with the file it is in. */
const missing = (declared: readonly Declaration[], known: ReadonlySet<string>) =>
  declared.filter(({ name }) => !known.has(name)).map(({ name, path }) => `${name} (src/${path})`)

describe('every declaration is registered:', () => {
  test('kinds of resources, in the list of their area', () => {
    const declared = declarations(/\bdefineResource\(\{\s*type: ('[^']+'|\w+)/g)
    expect(declared.length).toBeGreaterThan(150)
    expect(missing(declared, new Set(registered.map(({ type }) => type)))).toEqual([])
  })

  test('controllers, in the table of contents of their area', () => {
    const declared = declarations(/\b(?:defineController|transform|merge)(?:<[^(]*>)?\(\s*(?:\{\s*name: )?('[^']+'|\w+)?/g)
    const running = modes.flatMap((mode) => areas.flatMap((area) => area.parts?.(unstartedMachine(mode)).controllers ?? []))
    expect(declared.length).toBeGreaterThan(150)
    expect(missing(declared, new Set(running.map(({ name }) => name)))).toEqual([])
  })

  test('kinds of configuration documents, in src/os/config/kinds.ts', () => {
    const declared = declarations(/\bdefineDocument\(\{\s*kind: ('[^']+'|\w+)/g)
    expect(declared.length).toBeGreaterThan(40)
    expect(missing(declared, new Set(documentKinds.keys()))).toEqual([])
  })

  test.each([...modes])('methods of our own packages, by a node in %s mode', (mode) => {
    const schema = readFileSync(join(source, 'rpc/schema.txt'), 'utf8')
    const declared = [...schema.matchAll(/^\/(ichor\.[^:]+):/gm)].map(([, path = '']) => path)
    const served = new Set<string>(servedMethods(mode).map(({ path }) => path))
    expect(declared).not.toEqual([])
    expect(declared.filter((path) => !served.has(path))).toEqual([])
  })

  /** Files that no program opens, and who does. */
  const elsewhere: Record<string, string> = {
    'rpc/server/state-writes.ts': 'the conformance suite writes resources',
    'wire/cpio.ts': 'the image is made with it',
  }

  test('files, by one that a program opens: a command that is in no table, a list that nobody reads', () => {
    const reached = new Set<string>()
    const waiting = ['main.ts', ...Object.keys(elsewhere)]
    for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
      if (reached.has(path)) continue
      reached.add(path)
      for (const [, to = ''] of (texts.get(path) ?? '').matchAll(/(?:\bfrom |\bimport\(|\bimport )'(\.[^']+)'/g)) {
        const found = normalize(join(dirname(path), to))
        if (texts.has(found)) waiting.push(found)
      }
    }
    expect(files.filter((path) => !reached.has(path))).toEqual([])
  })
})

describe('a kind of our own', () => {
  test('is named "<plural>.<area>.ichor.dev"', () => {
    const names = new Set(areas.map(({ name }) => name))
    const well = ({ type }: AnyResourceType) => names.has(/^[A-Z][A-Za-z]*s\.([a-z0-9]+)\.ichor\.dev$/.exec(type)?.[1] ?? '')
    expect(own.length).toBeGreaterThan(4)
    expect(own.filter((kind) => !well(kind)).map(({ type }) => type)).toEqual([])
  })

  test('shares no alias with another kind', () => {
    const holders = new Map<string, string[]>()
    for (const kind of registered) for (const alias of allAliases(kind)) holders.set(alias, [...(holders.get(alias) ?? []), kind.type])
    const doubled = [...holders].filter(([, types]) => types.length > 1 && types.some((type) => type.endsWith('.ichor.dev')))
    expect(doubled.map(([alias, types]) => `${alias}: ${types.join(', ')}`)).toEqual([])
  })

  test('has columns of keys that its spec has', () => {
    const wrong = own.flatMap(({ type, columns, schema }) => {
      const known = new Set(specPaths(schema))
      const plain = (path: string) => path.replace(/^\{\.|\}$/g, '').replaceAll(/\[[^\]]*\]/g, '[]')
      const lost = Object.entries(columns).filter(([, path]) => !known.has(plain(path).replace(/\[\]$/, '')))
      return lost.map(([name, path]) => `${type}: column "${name}" shows ${path}`)
    })
    expect(wrong).toEqual([])
  })

  test('lives in a namespace that src/os/namespaces.ts describes', () => {
    expect(own.filter(({ namespace }) => !(namespace in namespaces)).map(({ type, namespace }) => `${type}: ${namespace}`)).toEqual([])
  })
})
