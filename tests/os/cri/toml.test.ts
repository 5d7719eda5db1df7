import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { formatToml, overlayToml, parseToml, type TomlTable } from '../../../src/os/cri/toml.ts'

test('what is written is read back', () => {
  const key = fc.string({ minLength: 1, maxLength: 8, unit: 'grapheme-ascii' }).filter((text) => text !== '__proto__')
  const value = fc.oneof(fc.string({ maxLength: 12 }), fc.integer(), fc.boolean(), fc.array(fc.string({ maxLength: 5 }), { maxLength: 3 }))
  const table = fc.dictionary(key, fc.oneof(value, fc.dictionary(key, value, { maxKeys: 3 })), { maxKeys: 5, noNullPrototype: true })
  fc.assert(
    fc.property(table, (given) => {
      expect(parseToml(formatToml(given as TomlTable))).toEqual(given as TomlTable)
    }),
  )
})

test('tables are named in full and come after plain keys', () => {
  expect(formatToml({ host: { 'http://a': { capabilities: ['pull'] } }, server: 'https://x', none: undefined })).toBe(
    'server = "https://x"\n\n[host."http://a"]\ncapabilities = ["pull"]\n',
  )
})

test('an overlay merges tables and replaces the rest', () => {
  expect(overlayToml({ a: { b: 1, c: [1] }, d: 'x' }, { a: { c: [2] }, d: 'y' })).toEqual({ a: { b: 1, c: [2] }, d: 'y' })
})
