import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { ConfigError } from '../../src/document/config-error.ts'
import { ConfigContainer } from '../../src/os/config/container.ts'
import { runs, sample } from '../support/runs.ts'

/** The message of whatever a text is refused with. */
function refusal(text: string | Uint8Array): string {
  try {
    ConfigContainer.parse(text)
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError)
    return (error as ConfigError).message
  }
  return 'accepted'
}

describe('a problem is reported with its position, its value and a suggestion', () => {
  test.each([
    [
      'an unknown key',
      'machine:\n  typ: worker\n',
      'line 2, column 3, document v1alpha1: machine.typ: unknown key "typ", did you mean "type"?',
    ],
    [
      'an unknown key far from all others',
      'machine:\n  quux: 1\n',
      'line 2, column 3, document v1alpha1: machine.quux: unknown key "quux"',
    ],
    ['a list for a map', 'machine:\n  kubelet: []\n', 'line 2, column 12, document v1alpha1: machine.kubelet: expected map, got list'],
    [
      'a text for a list',
      'machine:\n  certSANs: a\n',
      'line 2, column 13, document v1alpha1: machine.certSANs: expected list, got string "a"',
    ],
    [
      'a quoted boolean',
      'machine:\n  install:\n    wipe: "yes"\n',
      'line 3, column 11, document v1alpha1: machine.install.wipe: expected boolean, got string "yes"',
    ],
    [
      'a text for a number',
      'cluster:\n  controlPlane:\n    localAPIServerPort: high\n',
      'line 3, column 25, document v1alpha1: cluster.controlPlane.localAPIServerPort: expected number, got string "high"',
    ],
    [
      'a duplicate key',
      'machine:\n  type: worker\n  token: a\n  type: worker\n',
      'line 4, column 3, document v1alpha1: machine.type: duplicate key "type", first on line 2',
    ],
    ['an empty list item', 'machine:\n  disks:\n    -\n', 'line 3, column 6, document v1alpha1: machine.disks[0]: empty list item'],
    [
      'an empty entry',
      'machine:\n  registries:\n    mirrors:\n      docker.io:\n',
      'line 4, column 7, document v1alpha1: machine.registries.mirrors["docker.io"]: empty entry',
    ],
    [
      'a value against its pattern',
      'cluster:\n  controlPlane:\n    endpoint: http://a\n',
      'line 3, column 5, document v1alpha1: cluster.controlPlane.endpoint: "http://a" is not a URL like "https://10.0.0.1:6443"',
    ],
    [
      'a word that is not allowed',
      'apiVersion: v1alpha1\nkind: HostnameConfig\nauto: stabl\n',
      'line 3, column 1, document HostnameConfig: auto: "stabl" is not "stable", "off"',
    ],
    [
      'an unknown kind',
      'apiVersion: v1alpha1\nkind: HostnamConfig\n',
      'line 2, column 7: unknown kind "HostnamConfig", did you mean "HostnameConfig"?',
    ],
    [
      'a kind without version',
      'kind: HostnameConfig\n',
      'line 1, column 1: a document of kind "HostnameConfig" needs "apiVersion: v1alpha1"',
    ],
    ['another version', 'apiVersion: v2\nkind: HostnameConfig\n', 'line 1, column 13: HostnameConfig has no version "v2": use "v1alpha1"'],
    [
      'a document without kind',
      'machin:\n  type: x\n',
      'line 1, column 1: a document needs "machine" and "cluster", or "apiVersion" and "kind"; did you mean "machine" instead of "machin"?',
    ],
    ['a text', 'hello', 'line 1, column 1: a configuration document is a map, not a text'],
    ['nothing', '', 'the configuration is empty'],
    [
      'the same kind twice',
      'apiVersion: v1alpha1\nkind: HostnameConfig\nauto: stable\n---\napiVersion: v1alpha1\nkind: HostnameConfig\nauto: off\n',
      'line 5, column 1, document HostnameConfig: a second document of this kind, the first begins on line 1',
    ],
    [
      'two links of one name',
      'apiVersion: v1alpha1\nkind: LinkConfig\nname: a\n---\napiVersion: v1alpha1\nkind: DummyLinkConfig\nname: a\n',
      'line 5, column 1, document DummyLinkConfig "a": LinkConfig "a" on line 1 has that name already',
    ],
    [
      'text that is cut off inside quotes',
      'machine:\n  type: "work',
      'line 2, column 14: something that was opened is not closed: the text may be cut off (Missing closing "quote)',
    ],
    ['a control character', 'machine:\n  type: a\u0000b\n', 'line 2, column 10: control character 0x00 is not allowed in YAML'],
  ])('%s', (_, text, message) => expect(refusal(text)).toBe(message))

  test('bytes that are not UTF-8', () => {
    expect(refusal(Uint8Array.of(0x6d, 0xff))).toBe('not a text: the bytes are not UTF-8')
  })

  test('all problems at once, in order of position', () => {
    const lines = refusal('machine:\n  typ: a\n  kubelet: 1\n---\napiVersion: v1alpha1\nkind: Nope\n---\nfoo: 1\n').split('\n')
    expect(lines.map((line) => line.slice(0, 7))).toEqual(['line 2,', 'line 3,', 'line 6,', 'line 8,'])
  })
})

describe('scalars have the type their schema expects', () => {
  const parse = (text: string) => ConfigContainer.parse(text).v1alpha1!

  test('numbers and booleans are strings where strings are expected', () => {
    const { machine } = parse(
      'machine:\n  sysctls:\n    a: 1\n    b: true\n    c: 0x10\n    d:\n  kubelet:\n    extraArgs:\n      v: 4\n      x: [1, a]\n',
    )
    expect(machine?.sysctls).toEqual({ a: '1', b: 'true', c: '0x10', d: '' })
    expect(machine?.kubelet?.extraArgs).toEqual({ v: '4', x: ['1', 'a'] })
  })

  test('free values keep their types', () => {
    const { machine } = parse(
      'machine:\n  kubelet:\n    extraConfig:\n      a: 1\n      b: "1"\n      c: yes\n      d: true\n      e: 0o17\n      f: 017\n      g: ~\n      h: [1.5, x]\n',
    )
    expect(machine?.kubelet?.extraConfig).toEqual({ a: 1, b: '1', c: 'yes', d: true, e: 15, f: 15, g: null, h: [1.5, 'x'] })
  })

  test('an empty section equals a missing one, and a bare yes is true', () => {
    expect(parse('machine:\n  kubelet:\n  install:\n    wipe: yes\n')).toEqual({ machine: { install: { wipe: true } } })
  })

  test('anchors, aliases and merge keys are resolved', () => {
    const text = 'machine:\n  nodeLabels: &labels\n    a: b\n  nodeAnnotations:\n    <<: *labels\n    c: d\n  nodeTaints: *labels\n'
    expect(parse(text).machine).toEqual({ nodeLabels: { a: 'b' }, nodeAnnotations: { c: 'd', a: 'b' }, nodeTaints: { a: 'b' } })
  })
})

describe('hostile input is refused early', () => {
  const bomb = (depth: number) => {
    const levels = Array.from({ length: depth }, (_, i) => `        l${i + 1}: &l${i + 1} [${new Array(9).fill(`*l${i}`).join(', ')}]\n`)
    return `machine:\n  kubelet:\n    extraConfig:\n      a:\n        l0: &l0 x\n${levels.join('')}`
  }
  test.each([
    ['10 MB of YAML', `machine:\n${'  #'.padEnd(100, 'x').concat('\n').repeat(100_000)}`, 'configuration is too large'],
    ['an alias bomb', bomb(9), 'too many values: aliases may expand to'],
    [
      'an alias that contains itself',
      'machine:\n  kubelet:\n    extraConfig: &x {a: [*x]}\n',
      'alias "*x" has no anchor before it, or contains itself',
    ],
    ['brackets without end', '['.repeat(1_000_000), 'nested more than 64 levels deep'],
    ['dashes without end', '- '.repeat(1_000_000), 'nested more than 64 levels deep'],
    ['a million list items', '- x\n'.repeat(1_000_000), 'words and marks'],
    ['a text without end', `machine: "${'a'.repeat(4_000_000)}`, 'the text may be cut off'],
    ['thousands of documents', '---\n- a\n'.repeat(50_000), 'more than 1000 documents'],
  ])('%s', (_, text, message) => expect(refusal(text)).toContain(message))

  const inside = (text: string) => `machine:\n  kubelet:\n    extraConfig:\n${text.replaceAll(/^/gm, '      ')}`
  const large = (keys: number) => `a: &a {${Array.from({ length: keys }, (_, index) => `k${index}: 1`).join(', ')}}\n`

  /** Merged as often as it has keys, a map has far more entries than the 100,000 values that aliases may expand to. */
  const many = Math.max(1000, runs(3000))

  test('a map that is merged thousands of times at one place counts once', () => {
    const list = ConfigContainer.parse(inside(`${large(many)}b:\n  <<: [${Array(many).fill('*a').join(', ')}]\n  own: 2\n`))
    const keys = ConfigContainer.parse(inside(`${large(many)}b:\n${'  <<: *a\n'.repeat(many)}`))
    const merged = ({ documents }: ConfigContainer) =>
      Object.keys((documents[0]!.value as { machine: { kubelet: { extraConfig: { b: object } } } }).machine.kubelet.extraConfig.b).length
    expect([merged(list), merged(keys)]).toEqual([many + 1, many])
  })

  test('a map merged at thousands of places is refused', () => {
    const places = Array.from({ length: many }, (_, index) => `b${index}: {<<: *a}\n`).join('')
    expect(refusal(inside(large(many) + places))).toContain('too many values')
  })

  test('a long list of empty maps, merged at thousands of places, is refused as early', () => {
    const places = Array.from({ length: 3000 }, (_, index) => `b${index}: {<<: *l}\n`).join('')
    const began = process.cpuUsage()
    expect(refusal(inside(`a: &a {}\nl: &l [${Array(30_000).fill('*a').join(', ')}]\n${places}`))).toContain('too many values')
    expect(process.cpuUsage(began).user / 1e3).toBeLessThan(3000)
  })

  test('aliases of a name that was anchored thousands of times are resolved fast', () => {
    const anchors = Array.from({ length: 5_000 }, (_, index) => `a${index}: &x v\nb${index}: *x\n`).join('')
    const began = process.cpuUsage()
    expect(refusal(inside(anchors))).toBe('accepted')
    expect(process.cpuUsage(began).user / 1e3).toBeLessThan(3000)
  })

  test('any input is accepted or refused, nothing else', () => {
    const piece = fc.constantFrom(
      'machine',
      ':',
      ' ',
      '\n',
      '  ',
      '- ',
      '&a',
      '*a',
      '{',
      '}',
      '[',
      ']',
      '"',
      "'",
      '|',
      '>',
      '#',
      '---\n',
      '!',
      '!!str',
      '<<',
      'x',
      '1',
      '%',
      '?',
      ',',
      '\t',
    )
    fc.assert(
      fc.property(
        fc.oneof(
          fc.array(piece, { maxLength: 40 }).map((pieces) => pieces.join('')),
          fc.string(),
        ),
        (text) => {
          refusal(text)
        },
      ),
      { numRuns: runs(600) },
    )
  })

  test('a configuration truncated anywhere is accepted or refused with a message', async () => {
    const { generate } = await import('../../src/os/config/generate/generate.ts')
    const pair = { crt: 'YQ==', key: 'YQ==' }
    const secrets = {
      cluster: { id: 'a', secret: 'b' },
      secrets: { bootstraptoken: 'c' },
      trustdinfo: { token: 'd' },
      certs: { etcd: pair, k8s: pair, k8saggregator: pair, k8sserviceaccount: { key: 'YQ==' }, os: pair },
    }
    const text = generate('controlplane', { clusterName: 'x', endpoint: 'https://a:6443', secrets }).toString()
    for (const length of sample(Array.from({ length: Math.ceil(text.length / 29) }, (_, index) => 29 * index)))
      refusal(text.slice(0, length))
  })
})
