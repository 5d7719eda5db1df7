import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { dialAddress, endpointOf } from '../../../src/programs/talosctl/endpoint.ts'
import { UsageError } from '../../../src/programs/talosctl/failure.ts'
import { duration } from '../../../src/programs/talosctl/flags.ts'
import { modeText } from '../../../src/programs/talosctl/output/file-mode.ts'
import { parseTemplate } from '../../../src/programs/talosctl/output/jsonpath.ts'
import { table } from '../../../src/programs/talosctl/output/table.ts'
import { goDuration, humanSize, longTime } from '../../../src/programs/talosctl/output/units.ts'
import { parseTalosconfig } from '../../../src/programs/talosctl/talosconfig/talosconfig.ts'

test('columns are as wide as their widest cell and three more, the last one is not padded', () => {
  expect(
    table([
      ['A', 'BB', 'C'],
      ['xxx', '', 'y'],
      ['└─ z', undefined, ''],
    ]),
  ).toBe('A      BB   C\nxxx         y\n└─ z        \n')
})

test('sizes are in powers of a thousand', () => {
  const sizes = [0, 9, 62, 999, 1000, 1100, 9949, 10_000, 144e6, 1_298_432, 12e9]
  expect(sizes.map(humanSize)).toEqual(['0 B', '9 B', '62 B', '999 B', '1.0 kB', '1.1 kB', '9.9 kB', '10 kB', '144 MB', '1.3 MB', '12 GB'])
  expect([98_500, 99_500, 144_500_000, 145_500_000, 144_499_999].map(humanSize)).toEqual(['98 kB', '100 kB', '144 MB', '146 MB', '144 MB'])
})

test('durations read and print the same way', () => {
  expect([386_000, 0, 3_661_000, 59_400].map(goDuration)).toEqual(['6m26s', '0s', '1h1m1s', '59s'])
  expect(['1m30s', '20m0s', '0', '1.5h', '250ms'].map(duration)).toEqual([90_000, 1_200_000, 0, 5_400_000, 250])
  for (const wrong of ['', '5', 'm', '1d', '1m 30s', '-']) expect(() => duration(wrong)).toThrow('want a duration')
})

test('times carry their fraction', () => {
  expect(longTime({ seconds: 1_795_254_336, nanos: 123_000_000 })).toBe('2026-11-21 09:45:36.123 +0000 UTC')
})

test('modes are written as Go writes them', () => {
  expect([0o644, 2 ** 31 + 0o755, 2 ** 27 + 0o777, 2 ** 31 + 2 ** 20 + 0o777, 2 ** 26 + 2 ** 21 + 0o666].map(modeText)).toEqual([
    '-rw-r--r--',
    'drwxr-xr-x',
    'Lrwxrwxrwx',
    'dtrwxrwxrwx',
    'Dcrw-rw-rw-',
  ])
})

test('endpoints are hosts with a port, 50000 by default', () => {
  expect(['10.5.0.2', '10.5.0.2:443', 'https://node/', '[fd00::2]:1', 'fd00::2'].map(dialAddress)).toEqual([
    '10.5.0.2:50000',
    '10.5.0.2:443',
    'node:50000',
    '[fd00::2]:1',
    '[fd00::2]:50000',
  ])
  expect(endpointOf('[fd00::2]')).toEqual({ host: 'fd00::2', port: 50_000 })
})

const value = {
  spec: {
    hostname: 'x',
    list: [1, 2, 3],
    hosts: [
      { host: 'a', port: 1 },
      { host: 'b', port: 2 },
    ],
    'a.b': 5,
    yes: true,
    none: null,
  },
}
const templates: Record<string, string> = {
  '{.spec.hostname}': 'x\n',
  'host {.spec.hostname}!': 'host \nx\n!\n',
  '{.spec.list}': '[\n    1,\n    2,\n    3\n]\n',
  '{.spec.hosts[0]}': '{\n    "host": "a",\n    "port": 1\n}\n',
  '{.spec.list[*]}': '1\n2\n3\n',
  '{.spec.list[:]}': '1\n2\n3\n',
  '{.spec.list[-1]}': '3\n',
  '{.spec.list[0:2]}': '1\n2\n',
  '{.spec.hosts[*].host}': 'a\nb\n',
  '{range .spec.hosts[*]}{.host}{"="}{.port}{end}': 'a\n=\n1\nb\n=\n2\n',
  '{.spec.hosts[?(@.port==2)].host}': 'b\n',
  '{.spec.hosts[?(@.port<2)].host}': 'a\n',
  "{.spec['a.b']}": '5\n',
  '{.spec.a\\.b}': '5\n',
  '{..port}': '1\n2\n',
  '{.spec.yes}{.spec.none}': 'true\n<nil>\n',
}
for (const [template, text] of Object.entries(templates)) {
  test(`jsonpath ${template}`, () => expect(parseTemplate(template)(value)).toBe(text))
}

test('a map is shown with its keys sorted', () => {
  expect(parseTemplate('{.}')({ b: 1, a: { d: [], c: '<' } })).toBe(
    '{\n    "a": {\n        "c": "<",\n        "d": []\n    },\n    "b": 1\n}\n',
  )
})

test('a key or an index that is not there is an error that names it', () => {
  expect(() => parseTemplate('{.spec.missing.deeper}')(value)).toThrow('error finding result for jsonpath: missing is not found')
  expect(() => parseTemplate('{.spec.list[7]}')(value)).toThrow('array index out of bounds: index 7, length 3')
})

test('any text is a template or a usage error', () => {
  const letters = fc.string({ unit: fc.constantFrom(...'{}[].*?@$:="\'()ab1,- '), maxLength: 20 })
  fc.assert(
    fc.property(letters, (text) => {
      try {
        expect(typeof parseTemplate(text)(value)).toBe('string')
      } catch (error) {
        expect(error).toBeInstanceOf(UsageError)
      }
    }),
  )
})

test('a talosconfig that is none is refused with what is wrong', async () => {
  const wrong: Record<string, string> = {
    'a: [': 'tc is not YAML: ',
    '[]': 'tc is not a client configuration: the top is not a map',
    'contexts: []': 'tc is not a client configuration: "contexts" is not a map',
    'contexts: {a: 5}': 'tc: contexts.a is not a map',
    'contexts: {a: {endpoints: x}}': 'tc: contexts.a.endpoints is not a list of strings',
    'contexts: {a: {nodes: [1]}}': 'tc: contexts.a.nodes is not a list of strings',
    'contexts: {a: {ca: 5}}': 'tc: contexts.a.ca is not a string',
    'context: 5': 'tc: context is not a string',
  }
  for (const [text, message] of Object.entries(wrong)) {
    const error: unknown = await parseTalosconfig(text, 'tc').catch((caught) => caught)
    expect(error).toBeInstanceOf(UsageError)
    expect((error as Error).message).toStartWith(message)
  }
})

test('any text is a talosconfig or a usage error', async () => {
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: fc.constantFrom(...'ctxa:{}[]&*!|>\'"%-\n\t #?,0'), maxLength: 40 }), async (text) => {
      await parseTalosconfig(text).catch((error) => expect(error).toBeInstanceOf(UsageError))
    }),
  )
})
