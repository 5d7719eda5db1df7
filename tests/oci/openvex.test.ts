import { expect, test } from 'bun:test'
import { packagesOf, parseVex, VexError, vexContext } from '../../src/oci/openvex.ts'

const statement = {
  vulnerability: { name: 'CVE-2022-0563' },
  products: [{ '@id': 'pkg:deb/debian/mount' }],
  status: 'not_affected',
  justification: 'vulnerable_code_not_present',
}
const document = {
  '@context': vexContext,
  '@id': 'https://example.org/vex/1',
  author: 'Operators of example.org',
  timestamp: '2026-11-28T12:00:00Z',
  version: 1,
  statements: [statement],
}

const faults = (value: unknown): readonly string[] => {
  try {
    parseVex(typeof value === 'string' ? value : JSON.stringify(value))
    return []
  } catch (error) {
    if (error instanceof VexError) return error.faults
    throw error
  }
}
const withStatement = (changed: object) => ({ ...document, statements: [{ ...statement, ...changed }] })
const without = (key: string) => Object.fromEntries(Object.entries(document).filter(([name]) => name !== key))

test('a document is read, with all that may be in it', () => {
  const full = {
    ...document,
    ...{ role: 'Operator', tooling: 'vexctl', last_updated: '2026-11-28T12:00:00.5+01:00' },
    statements: [
      {
        ...statement,
        ...{ '@id': 'https://example.org/vex/1#1', version: 2, supplier: 'Debian', status_notes: 'looked at', impact_statement: 'none' },
        vulnerability: { '@id': 'https://nvd.nist.gov/vuln/detail/CVE-2022-0563', name: 'CVE-2022-0563', description: 'd', aliases: ['A'] },
        products: [
          {
            identifiers: { purl: 'pkg:deb/debian/mount' },
            hashes: { 'sha-256': 'ab' },
            subcomponents: [{ '@id': 'pkg:deb/debian/libmount1' }],
          },
        ],
      },
      {
        ...statement,
        status: 'affected',
        justification: undefined,
        action_statement: 'update',
        action_statement_timestamp: '2026-11-28T12:00:00Z',
      },
      { ...statement, status: 'fixed', justification: undefined },
      { ...statement, status: 'under_investigation', justification: undefined },
      { ...statement, justification: undefined, impact_statement: 'nothing runs it' },
    ],
  }
  expect(faults(full)).toEqual([])
  expect(parseVex(JSON.stringify(full))).toEqual(JSON.parse(JSON.stringify(full)))
})

test.each<[string, unknown, string[]]>([
  ['no JSON', '{', ['not a JSON document: give the OpenVEX document whole, as it was downloaded']],
  ['no mapping', '1', ['the document must be a mapping with "@context", "@id", "author", "timestamp", "version" and "statements"']],
  ['no context', without('@context'), ['@context is missing']],
  ['another version', { ...document, '@context': 'https://openvex.dev/ns/v0.1.0' }, [`@context must be "${vexContext}"`]],
  ['no identifier', without('@id'), ['@id is missing']],
  [
    'an identifier without a scheme',
    { ...document, '@id': 'mine' },
    ['@id must be an identifier with a scheme, as in https://example.org/vex/1'],
  ],
  ['no author', { ...document, author: '' }, ['author must be the name of who makes the statements']],
  ['no time', { ...document, timestamp: '2026-13-28T12:00:00Z' }, ['timestamp must be a time as in 2026-11-28T12:00:00Z']],
  ['a version as text', { ...document, version: '1' }, ['version must be a number from 1 on']],
  ['version 0', { ...document, version: 0 }, ['version must be a number from 1 on']],
  ['a version between', { ...document, version: 1.5 }, ['version must be a whole number']],
  ['no statement', { ...document, statements: [] }, ['statements must have at least one statement']],
  ['a key that is not known', { ...document, autor: 'x' }, ['autor is not known in OpenVEX 0.2.0: remove it, or correct its name']],
  ['a flaw without a name', withStatement({ vulnerability: {} }), ['statements.0.vulnerability.name is missing']],
  ['a flaw as text', withStatement({ vulnerability: 'CVE-1' }), ['statements.0.vulnerability must be a mapping with "name"']],
  ['no products', withStatement({ products: [] }), ['statements.0.products must be a list of what the statement is about']],
  [
    'another status',
    withStatement({ status: 'unaffected' }),
    ['statements.0.status must be one of not_affected, affected, fixed, under_investigation'],
  ],
  [
    'no reason',
    withStatement({ justification: undefined }),
    ['statements.0.justification is missing: "not_affected" needs it or "impact_statement"'],
  ],
  [
    'no action',
    withStatement({ status: 'affected', justification: undefined }),
    ['statements.0.action_statement is missing: "affected" needs what can be done about it'],
  ],
  [
    'reasons for what is affected',
    withStatement({ status: 'affected', impact_statement: 'x', action_statement: 'x' }),
    ['statements.0.justification goes with "not_affected" only', 'statements.0.impact_statement goes with "not_affected" only'],
  ],
  ['an action for what is not', withStatement({ action_statement: 'x' }), ['statements.0.action_statement goes with "affected" only']],
  [
    'a product that is no package',
    withStatement({ products: [{ '@id': 'https://example.org/product' }] }),
    ['statements.0.products.0 names no package: give it or its subcomponents an "@id" as in pkg:deb/debian/udev'],
  ],
  [
    'several faults',
    { ...withStatement({ status: 'x', products: 'x' }), version: -1 },
    [
      'version must be a number from 1 on',
      'statements.0.products must be a list of what the statement is about',
      'statements.0.status must be one of not_affected, affected, fixed, under_investigation',
    ],
  ],
])('a document with %s is refused, a line for each fault', (_, value, lines) => {
  expect(faults(value)).toEqual(lines)
})

test('a product stands for its subcomponents, where it has some', () => {
  expect(packagesOf({ '@id': 'pkg:a/b', subcomponents: [{ '@id': 'pkg:c/d' }, { identifiers: { purl: 'pkg:e/f' } }] })).toEqual([
    'pkg:c/d',
    'pkg:e/f',
  ])
  expect(packagesOf({ '@id': 'https://example.org/x', identifiers: { purl: 'pkg:a/b' } })).toEqual(['pkg:a/b'])
})
