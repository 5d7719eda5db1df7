import { expect, test } from 'bun:test'
import { stringify } from 'yaml'
import { schema } from '../../../../../src/programs/talosctl/commands/diagnostics/measurements.ts'
import { mismatches } from '../../../../../src/programs/talosctl/output/schema.ts'
import { serverStream } from '../../../../../src/rpc/server/method.ts'
import { talosctl } from '../../peer.ts'

const value = 'ab'.repeat(32)
const events = [{ index: 1, type: 'EV_SEPARATOR', digest: value, subject: 'separator' }]
const measurement = (explained = true) => ({ bank: 'sha256', value, explained, events })
const since = { since: '2026-11-20T08:00:00.000Z', release: 'v1.0.0' }
const cmdline = { kind: 'changed', type: 'EV_IPL', subject: 'section .cmdline', before: 'quiet', after: 'quiet debug' }

function node(pcrs: Record<string, object>, changes: Record<string, object> = {}) {
  return serverStream('cosi.resource.State/List', ['os:admin'], async function* ({ type }) {
    for (const [id, spec] of Object.entries(type === 'PCRMeasurements.hardware.ichor.dev' ? pcrs : changes))
      yield { resource: { metadata: { id }, spec: { yamlSpec: stringify(spec) } } }
  })
}

const changed = node(
  { 0: measurement(), 11: measurement(), 2: measurement(false) },
  {
    0: { changed: false, ...since, before: value, changes: [] },
    11: {
      changed: true,
      ...since,
      before: value,
      changes: [cmdline, { kind: 'added', type: 'EV_IPL', subject: 'section .sbat', after: '0123…' }],
    },
    2: { changed: true, ...since, before: value, changes: [{ kind: 'unlogged' }] },
    8: { changed: true, ...since, before: value, changes: [{ kind: 'removed', type: 'EV_IPL', subject: 'grub', before: '4567…' }] },
  },
)

test('the PCRs are listed by number, each with the reasons why it changed', async () => {
  const { code, stdout, stderr } = await talosctl([changed], ['measurements'])
  expect([code, stderr]).toEqual([0, ''])
  expect(
    stdout
      .replaceAll(/^\S+ (?=\s*\d)/gm, 'node ')
      .split('\n')
      .map((line) => line.replaceAll(/ {2,}/g, ' | ').trim()),
  ).toEqual([
    'NODE | PCR | VALUE | CHANGED | WHY',
    expect.stringMatching(/^node \| 0 \| abababababababab… \| no/),
    expect.stringMatching(/^node \| 2 \| abababababababab… \| yes \| extended by something that is in no log$/),
    '| the value is not the one of the events in the log',
    expect.stringMatching(/^node \| 8 \| unused \| yes \| removed: grub \(4567…\)$/),
    expect.stringMatching(/^node \| 11 \| abababababababab… \| yes \| section \.cmdline: quiet → quiet debug$/),
    '| added: section .sbat (0123…)',
    '',
  ])
})

test('for programs everything is there', async () => {
  const items = JSON.parse((await talosctl([changed], ['measurements', '-o', 'json'])).stdout)
  expect(items.flatMap((item: unknown) => mismatches(item, schema))).toEqual([])
  expect(Bun.YAML.parse((await talosctl([changed], ['measurements', '-o', 'yaml'])).stdout)).toHaveLength(4)
  const [first, , , last] = items
  expect(first).toMatchObject({ pcr: 0, bank: 'sha256', value, explained: true, events, changed: false, ...since, before: value })
  expect(last).toMatchObject({ pcr: 11, changes: [cmdline, {}] })
})

test('a machine without a TPM, and one without a good start, have one line', async () => {
  const without = await talosctl([node({})], ['measurements'])
  expect([without.code, without.stdout]).toEqual([0, ''])
  expect(without.stderr).toContain(': the machine has no TPM 2.0, its start is not measured\n')
  const first = await talosctl([node({ 0: measurement() })], ['measurements'])
  expect(first.stderr).toContain(': there is no good start to compare with')
  expect(first.stdout).toMatch(/0 +abababababababab… +unknown/)
})
