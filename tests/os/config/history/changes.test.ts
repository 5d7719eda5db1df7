/** What counts as a difference of two configurations, how it is shown, and who made it. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { ConfigContainer } from '../../../../src/os/config/container.ts'
import { changeText } from '../../../../src/os/config/history/change-text.ts'
import { changesBetween, isBelow } from '../../../../src/os/config/history/changes.ts'
import { lastChangeOf } from '../../../../src/os/config/history/last-change.ts'
import { runs } from '../../../support/runs.ts'
import { config, secrets } from '../machine.ts'

const between = (before: string, after: string) => changesBetween(ConfigContainer.parse(before), ConfigContainer.parse(after))
const shown = (before: string, after: string) => changeText(between(before, after)).trimEnd().split('\n')

describe('no difference', () => {
  const plain = 'machine:\n  type: worker\n  sysctls: {a.b: "1", c.d: x}\n  certSANs: [a, b]\ncluster: {}\n'
  test('is a comment, the order of keys, quoting, an anchor, the order of documents or a marker', () => {
    const other =
      '# a comment\ncluster: {}\nmachine:\n  certSANs:\n    - "a"\n    - b\n  sysctls:\n    c.d: \'x\' # why\n    a.b: 1\n  type: "worker"\n'
    expect(between(plain, other)).toEqual([])
    const [one, two] = ['dns: 1.1.1.1', 'dns: 2.2.2.2'].map(
      (_, at) => `apiVersion: v1alpha1\nkind: DummyLinkConfig\nname: d${at}\nup: true\n`,
    )
    expect(between(`${plain}---\n${one}---\n${two}`, `---\n${two}---\n${one}---\n${plain}`)).toEqual([])
    expect(between('machine: {sysctls: &x {a: "1"}, sysfs: {a: "1"}}\n', 'machine: {sysctls: {a: "1"}, sysfs: {a: "1"}}\n')).toEqual([])
  })
})

describe('a difference', () => {
  test('is shown as the lines that changed, with their path', () => {
    expect(shown(config('worker'), config('worker', 'machine: {sysctls: {a.b: "1"}, nodeLabels: {rack: a1}}'))).toEqual([
      '+ machine.nodeLabels.rack: a1',
      '+ machine.sysctls["a.b"]: "1"',
    ])
    expect(shown('machine: {type: worker, certSANs: [a, b, c]}\n', 'machine: {type: controlplane, certSANs: [a, x, c, d]}\n')).toEqual([
      '- machine.type: worker',
      '+ machine.type: controlplane',
      '- machine.certSANs[1]: b',
      '+ machine.certSANs[1]: x',
      '+ machine.certSANs[3]: d',
    ])
  })

  test('of a document that comes or goes names it', () => {
    const link = 'apiVersion: v1alpha1\nkind: LinkConfig\nname: eth0\naddresses: [{address: 10.0.0.2/24}]\n'
    const text = 'machine: {}\n'
    expect(shown(text, `${text}---\n${link}`)).toContain('+ LinkConfig "eth0": addresses[0].address: 10.0.0.2/24')
    expect(shown(`${text}---\n${link}`, text)).toContain('- LinkConfig "eth0": kind: LinkConfig')
  })

  test('shows no secret', () => {
    const other = structuredClone(secrets)
    other.trustdinfo.token = 'another-token'
    const before = config('controlplane')
    const after = before
      .replace(/^ {2}token: .*$/m, '  token: another-token')
      .replace(/^( {4}key: ).*$/m, `$1${Buffer.from('-----BEGIN ED25519 PRIVATE KEY-----').toString('base64')}`)
    const lines = shown(before, after)
    expect(lines).toContain('+ machine.token: ******')
    expect(lines).toContain('- machine.ca.key: ******')
    expect(lines.join('\n')).not.toContain('another-token')
  })

  test('is whatever patches add and take away again', () => {
    const list = fc.array(fc.constantFrom('a', 'b', 'c'), { maxLength: 6 })
    fc.assert(
      fc.property(list, list, (before, after) => {
        const text = (items: string[]) => `machine: {certSANs: ${JSON.stringify(items)}}\n`
        const changes = between(text(before), text(after))
        expect(changes.length === 0).toBe(Bun.deepEquals(before, after))
        const gained = changes.reduce((sum, change) => sum + Number(change.after !== undefined) - Number(change.before !== undefined), 0)
        if (before.length && after.length) expect(gained).toBe(after.length - before.length)
      }),
      { numRuns: runs(60), seed: 5 },
    )
  })

  test('is below a section, or of all that a path is in', () => {
    const [change] = between('machine: {}\n', 'machine: {network: {nameservers: [1.1.1.1]}}\n')
    expect(
      [['machine.network'], ['machine.net'], ['machine.network.nameservers.x'], ['cluster']].map((at) => isBelow(change!, at)),
    ).toEqual([true, false, true, false])
  })
})

describe('the last change of a setting', () => {
  const by = { roles: ['os:admin'], peer: '10.0.0.9', actor: 'alice' }
  const text = (args: string, label = 'a') => `machine: {nodeLabels: {x: ${label}}}\ncluster: {apiServer: {extraArgs: {v: "${args}"}}}\n`
  const entry = (id: number, content: string, more = {}) => ({
    id,
    time: `2026-11-21T12:00:0${id}Z`,
    mode: 'auto' as const,
    by,
    text: content,
    ...more,
  })
  const of = (...entries: ReturnType<typeof entry>[]) => ({ list: () => entries })

  test('is the entry that made it what it is, with the one before it to go back to', () => {
    const history = of(entry(1, text('1')), entry(2, text('2')), entry(3, text('2', 'b')))
    expect(lastChangeOf('cluster.apiServer.extraArgs', history, text('2', 'b'))).toEqual({
      id: 2,
      time: '2026-11-21T12:00:02Z',
      by,
      mode: 'auto',
      previous: 1,
    })
    expect(lastChangeOf('machine.nodeLabels', history, text('2', 'b'))?.id).toBe(3)
  })

  test('is none of those that were reverted, and nothing before the history begins', () => {
    const history = of(entry(1, text('1')), entry(2, text('9'), { outcome: 'reverted' }), entry(3, text('1', 'b')))
    expect(lastChangeOf('cluster.apiServer', history, text('1', 'b'))).toBeUndefined()
    expect(lastChangeOf('cluster.apiServer', of(), text('1'))).toBeUndefined()
    expect(lastChangeOf('cluster.apiServer', of(entry(1, 'broken: [')), 'broken: [')).toBeUndefined()
  })
})
