import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { ConfigContainer } from '../../src/os/config/container.ts'
import { runs } from '../support/runs.ts'

const base = `# who we are
version: v1alpha1 # first
machine:
  type: worker
  certSANs: [a.example]
  # the network
  network:
    interfaces:
      - interface: eth0 # uplink
        dhcp: true
        vlans:
          - vlanId: 5
            dhcp: true
      - deviceSelector:
          driver: virtio
        mtu: 1400
cluster:
  network:
    podSubnets:
      - 10.244.0.0/16
  inlineManifests:
    - name: one
      contents: old
---
apiVersion: v1alpha1
kind: HostnameConfig
hostname: a # the name
---
apiVersion: v1alpha1
kind: VolumeConfig
name: EPHEMERAL
provisioning:
  minSize: 1GiB
`

const config = ConfigContainer.parse(base)
const patched = (...patches: string[]) => config.patch(...patches)
const machine = (...patches: string[]) => patched(...patches).v1alpha1?.machine
const operations = (...list: unknown[]) => JSON.stringify(list)

test('parts that a patch does not change stay identical, to the byte', () => {
  expect(config.toString()).toBe(base)
  for (const empty of ['', '---\n', '# only a comment\n', '{}', '[]', '--- {}\n']) expect(patched(empty).toString()).toBe(base)
})

describe('a strategic merge', () => {
  test('replaces scalars, merges maps, appends to lists and keeps comments and order', () => {
    const text = patched('machine:\n  type: controlplane\n  certSANs: [b.example, a.example]\n  sysctls: {x.y: 1}\n').toString()
    expect(text).toContain(
      '# who we are\nversion: v1alpha1 # first\nmachine:\n  type: controlplane\n  certSANs: [a.example, b.example]\n  # the network\n',
    )
    expect(text).toContain('- interface: eth0 # uplink\n')
    expect(text).toContain('  sysctls:\n    x.y: 1\ncluster:')
    expect(text).toContain('hostname: a # the name\n')
  })

  test('identifies interfaces and VLANs by their keys', () => {
    const interfaces = machine(
      'machine:\n  network:\n    interfaces:\n      - interface: eth0\n        mtu: 9000\n        vlans:\n          - {vlanId: 5, mtu: 1300}\n          - {vlanId: 6}\n      - deviceSelector: {driver: virtio}\n        dhcp: true\n      - interface: eth1\n',
    )?.network?.interfaces
    expect(interfaces).toEqual([
      { interface: 'eth0', dhcp: true, mtu: 9000, vlans: [{ vlanId: 5, dhcp: true, mtu: 1300 }, { vlanId: 6 }] },
      { deviceSelector: { driver: 'virtio' }, mtu: 1400, dhcp: true },
      { interface: 'eth1' },
    ])
  })

  test('replaces lists that are declared so', () => {
    const { v1alpha1 } = patched(
      'cluster:\n  network:\n    podSubnets: [10.0.0.0/8]\n  inlineManifests:\n    - {name: one, contents: new}\n    - {name: two, contents: x}\n',
    )
    expect(v1alpha1?.cluster?.network?.podSubnets).toEqual(['10.0.0.0/8'])
    expect(v1alpha1?.cluster?.inlineManifests).toEqual([
      { name: 'one', contents: 'new' },
      { name: 'two', contents: 'x' },
    ])
  })

  test('deletes sections, list items and documents', () => {
    expect(machine('machine:\n  network:\n    $patch: delete\n')?.network).toBeUndefined()
    expect(
      machine('machine:\n  network:\n    interfaces:\n      - interface: eth0\n        $patch: delete\n')?.network?.interfaces,
    ).toHaveLength(1)
    const without = patched('apiVersion: v1alpha1\nkind: VolumeConfig\nname: EPHEMERAL\n$patch: delete\n')
    expect(without.documents.map(({ label }) => label)).toEqual(['v1alpha1', 'HostnameConfig'])
    expect(patched('machine:\n  absent:\n    $patch: delete\n').v1alpha1).toEqual(config.v1alpha1)
  })

  test('replaces maps and lists on request', () => {
    expect(machine('machine:\n  network:\n    $patch: replace\n    nameservers: [1.1.1.1]\n')?.network).toEqual({
      nameservers: ['1.1.1.1'],
    })
    expect(machine('machine:\n  certSANs:\n    - $patch: replace\n    - c.example\n')?.certSANs).toEqual(['c.example'])
  })

  test('adds documents and merges those of the same name', () => {
    const documents = patched(
      'apiVersion: v1alpha1\nkind: VolumeConfig\nname: EPHEMERAL\nprovisioning: {maxSize: 50%}\n---\napiVersion: v1alpha1\nkind: LinkConfig\nname: eth9\nmtu: 1400\n',
    ).documents
    expect(documents.map(({ value }) => value).slice(2)).toEqual([
      { apiVersion: 'v1alpha1', kind: 'VolumeConfig', name: 'EPHEMERAL', provisioning: { minSize: '1GiB', maxSize: '50%' } },
      { apiVersion: 'v1alpha1', kind: 'LinkConfig', name: 'eth9', mtu: 1400 },
    ])
  })

  test('is checked like any configuration', () => {
    expect(() => patched('machine:\n  typ: x\n')).toThrow('unknown key "typ", did you mean "type"?')
    expect(() => patched('machine:\n  certSANs: {a: b}\n')).toThrow('machine.certSANs: expected list, got map')
    expect(() => patched('foo: 1\n')).toThrow('a document needs "machine" and "cluster"')
    expect(() => patched('just text')).toThrow('a patch is a map in the shape of the configuration')
  })

  test('aliases in a patch and in the configuration are expanded', () => {
    const aliased = ConfigContainer.parse('machine:\n  nodeLabels: &l {a: b}\n  nodeAnnotations: *l\n')
    const { machine } = aliased.patch('machine:\n  nodeAnnotations: {c: d}\n  sysctls: &x {s: t}\n  sysfs: *x\n').v1alpha1!
    expect(machine).toEqual({ nodeLabels: { a: 'b' }, nodeAnnotations: { a: 'b', c: 'd' }, sysctls: { s: 't' }, sysfs: { s: 't' } })
    expect(aliased.patch('machine:\n  nodeLabels: {c: d}\n').v1alpha1?.machine?.nodeAnnotations).toEqual({ a: 'b' })
    expect(aliased.patch('machine:\n  nodeLabels: {$patch: delete}\n').v1alpha1?.machine?.nodeAnnotations).toEqual({ a: 'b' })
  })
})

describe('a JSON patch', () => {
  test('adds, replaces, removes, moves, copies and tests', () => {
    const result = machine(
      operations(
        { op: 'test', path: '/machine/type', value: 'worker' },
        { op: 'replace', path: '/machine/type', value: 'controlplane' },
        { op: 'add', path: '/machine/certSANs/0', value: 'first' },
        { op: 'add', path: '/machine/certSANs/-', value: 'last' },
        { op: 'add', path: '/machine/nodeLabels', value: { 'a/b': 'c' } },
        { op: 'copy', from: '/machine/nodeLabels', path: '/machine/nodeAnnotations' },
        { op: 'replace', path: '/machine/nodeLabels/a~1b', value: 'd' },
        { op: 'move', from: '/machine/network/interfaces/1/mtu', path: '/machine/network/interfaces/0/mtu' },
        { op: 'remove', path: '/machine/network/interfaces/0/vlans' },
      ),
    )
    expect(result).toEqual({
      type: 'controlplane',
      certSANs: ['first', 'a.example', 'last'],
      nodeLabels: { 'a/b': 'd' },
      nodeAnnotations: { 'a/b': 'c' },
      network: { interfaces: [{ interface: 'eth0', dhcp: true, mtu: 1400 }, { deviceSelector: { driver: 'virtio' } }] },
    })
  })

  test('reaches other documents by kind, and by kind and name', () => {
    const text = patched(
      operations(
        { op: 'replace', path: '/HostnameConfig/hostname', value: 'b' },
        { op: 'remove', path: '/VolumeConfig/EPHEMERAL/provisioning' },
      ),
    ).toString()
    expect(text).toContain('hostname: b')
    expect(text).not.toContain('provisioning')
  })

  test('may be written as YAML, and writes block style without needless quotes', () => {
    expect(patched('- op: add\n  path: /machine/sysctls\n  value: {a: "1"}\n').toString()).toContain('  sysctls:\n    a: "1"\n')
    expect(patched(operations({ op: 'add', path: '/machine/install', value: { disk: '/dev/vda' } })).toString()).toContain(
      '  install:\n    disk: /dev/vda\n',
    )
  })

  test.each([
    ['a path that is not there', { op: 'remove', path: '/machine/nope' }, 'JSON patch "remove /machine/nope": there is no "/machine/nope"'],
    [
      'a parent that is not there',
      { op: 'add', path: '/machine/a/b', value: 1 },
      'JSON patch "add /machine/a/b": there is no "/machine/a"',
    ],
    ['a list index too high', { op: 'add', path: '/machine/certSANs/9', value: 1 }, 'the list has no place "9": it has 1 items'],
    [
      'a test that fails',
      { op: 'test', path: '/machine/type', value: 'x' },
      'JSON patch "test /machine/type": the value there is another one',
    ],
    ['an unknown operation', { op: 'merge', path: '/machine' }, 'operation 1 of the JSON patch: "op" is "merge"'],
    ['an operation without path', { op: 'remove' }, 'operation 1 of the JSON patch: "path" is required'],
    ['an operation without value', { op: 'add', path: '/machine/type' }, '"value" is required for "add"'],
    ['a pointer that is none', { op: 'remove', path: 'machine' }, '"machine" is not a JSON pointer'],
  ])('refuses %s', (_, operation, message) => expect(() => patched(operations(operation))).toThrow(message))
})

const word = fc.stringMatching(/^[a-z]{1,6}$/)
const values: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    word,
    fc.integer(),
    fc.boolean(),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(word, tie('value'), { maxKeys: 3 }),
  ),
})).value

test('a strategic merge is idempotent', () => {
  fc.assert(
    fc.property(fc.dictionary(word, values, { maxKeys: 4 }), fc.dictionary(word, values, { maxKeys: 4 }), (before, change) => {
      const free = (extraConfig: unknown) => JSON.stringify({ machine: { kubelet: { extraConfig } } })
      const start = ConfigContainer.parse(free(before))
      const once = start.patch(free(change))
      expect(once.patch(free(change)).v1alpha1).toEqual(once.v1alpha1)
    }),
    { numRuns: runs(100) },
  )
})

describe('the difference of two configurations', () => {
  test('is a patch that names only what differs', () => {
    const other = ConfigContainer.parse(
      base
        .replace('type: worker', 'type: controlplane')
        .replace('        mtu: 1400\n', '')
        .replace('hostname: a', 'hostname: b')
        .replace(/---\napiVersion: v1alpha1\nkind: VolumeConfig[\s\S]*$/, ''),
    )
    expect(config.difference(other)).toBe(
      [
        'apiVersion: v1alpha1',
        'kind: VolumeConfig',
        'name: EPHEMERAL',
        '$patch: delete',
        '---',
        'machine:',
        '  type: controlplane',
        '  # the network',
        '  network:',
        '    interfaces:',
        '      - $patch: replace',
        '      - interface: eth0 # uplink',
        '        dhcp: true',
        '        vlans:',
        '          - vlanId: 5',
        '            dhcp: true',
        '      - deviceSelector:',
        '          driver: virtio',
        '---',
        'apiVersion: v1alpha1',
        'kind: HostnameConfig',
        'hostname: b # the name',
        '',
      ].join('\n'),
    )
    expect(config.patch(config.difference(other)).documents.map(({ value }) => value)).toEqual(other.documents.map(({ value }) => value))
    expect(config.difference(config)).toBe('')
  })

  test('applied to the first gives the second', () => {
    const extra: fc.Arbitrary<unknown> = fc.dictionary(word, fc.oneof(values, fc.constant(null)), { maxKeys: 5 })
    fc.assert(
      fc.property(extra, extra, (one, two) => {
        const [from, to] = [one, two].map((extraConfig) => ConfigContainer.parse(JSON.stringify({ machine: { kubelet: { extraConfig } } })))
        expect(from!.patch(from!.difference(to!)).v1alpha1).toEqual(to!.v1alpha1)
      }),
      { numRuns: runs(150) },
    )
  })
})

test('comments stay at their indentation, also after a section that ends in a commented-out example', () => {
  const text = [
    '# head',
    'machine:',
    '    kubelet:',
    '        image: a',
    '        # # an example',
    '        # extraArgs:',
    '        #     v: 4',
    '',
    '    # what is installed',
    '    install:',
    '        disk: /dev/sda # this one',
    '    # an end',
    '# the cluster',
    'cluster:',
    '    id: b',
    '',
  ].join('\n')
  const patched = ConfigContainer.parse(text).patch('machine: {token: t}').toString()
  expect(patched.split('\n').filter((line) => !line.includes('token'))).toEqual(text.split('\n'))
})
