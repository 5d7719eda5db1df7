import { Command } from 'commander'
import type { SpecOf } from '../../../../cosi/resource.ts'
import type { PCRMeasurement } from '../../../../os/hardware/resources/pcr-measurement.ts'
import type { PCRChange } from '../../../../os/lifecycle/resources/pcr-change.ts'
import type { Cluster } from '../../cluster.ts'
import type { Io } from '../../io.ts'
import { type OutputFlags, type OutputFormat, outputOption, structured } from '../../output/output.ts'
import type { Schema } from '../../output/schema.ts'
import { table } from '../../output/table.ts'
import { specsOf } from '../../resource/definition.ts'

interface MeasurementsFlags extends OutputFlags {
  insecure?: boolean
}

type Measurement = SpecOf<typeof PCRMeasurement>
type Change = SpecOf<typeof PCRChange>
type Difference = Change['changes'][number]

/** A PCR of a node, with the comparison where there is one. */
type Register = { readonly node: string; readonly pcr: number } & Measurement & Partial<Change>

/** An item of the JSON and YAML. */
export const schema = {
  node: 'string',
  pcr: 'number',
  bank: 'string',
  value: 'string',
  explained: 'boolean',
  events: [{ index: 'number', type: 'string', digest: 'string', subject: 'string', detail: 'string' }],
  changed: 'boolean',
  since: 'string',
  release: 'string',
  before: 'string',
  changes: [{ kind: 'string', type: 'string', subject: 'string', before: 'string', after: 'string' }],
} as const satisfies Schema

/** Milliseconds that a node may take to list its PCRs. */
const readTimeout = 60_000

/** Characters of a value in the table. */
const shownDigits = 16

/** talosctl measurements */
export const measurements = (io: Io, cluster: Cluster) =>
  new Command()
    .description(
      'Show what the TPM of each node measured at this start: the PCRs, which of them changed since the last good start before it, and the events that differ. Example: talosctl measurements -n 10.5.0.2',
    )
    .addOption(outputOption(schema))
    .option('-i, --insecure', 'the node has no certificates yet, or its STATE is locked: show what this start measured')
    .action(async ({ insecure, output }: MeasurementsFlags) => {
      if (!insecure) return runMeasurements(io, cluster, output)
      const node = await cluster.insecure()
      await runMeasurements(io, node, output).finally(() => node.close())
    })

/** Prints the PCRs of every node. Nodes without a TPM have one line. */
async function runMeasurements(io: Io, cluster: Cluster, output: OutputFormat): Promise<void> {
  const { items, failure } = await cluster.collect(async function* (node, name, signal) {
    const read = (namespace: string, type: string) => specsOf(cluster, { namespace, type }, { node, signal, timeout: readTimeout })
    const found = await read('hardware', 'PCRMeasurements.hardware.ichor.dev')
    const changes = await read('runtime', 'PCRChanges.runtime.ichor.dev')
    yield { name, registers: registersOf(name, found as Map<string, Measurement>, changes as Map<string, Change>) }
  }, readTimeout)
  for (const { name, registers } of items) {
    if (registers.length === 0) io.stderr.write(`${name}: the machine has no TPM 2.0, its start is not measured\n`)
    else if (registers.every(({ changed }) => changed === undefined))
      io.stderr.write(`${name}: there is no good start to compare with: STATE is not open, or the machine was not ready yet\n`)
  }
  const registers = items.flatMap((item) => item.registers)
  if (!structured(io, output, registers) && registers.length > 0)
    io.stdout.write(table([['NODE', 'PCR', 'VALUE', 'CHANGED', 'WHY'], ...registers.flatMap(rows)]))
  if (failure) throw failure
}

/** By number; a PCR that is no longer in use has a comparison only. */
function registersOf(node: string, found: ReadonlyMap<string, Measurement>, changes: ReadonlyMap<string, Change>): Register[] {
  const [first] = found.values()
  if (!first) return []
  const unused: Measurement = { bank: first.bank, value: '', explained: true, events: [] }
  const ids = [...new Set([...found.keys(), ...changes.keys()])].sort((a, b) => Number(a) - Number(b))
  return ids.map((id) => ({ node, pcr: Number(id), ...(found.get(id) ?? unused), ...changes.get(id) }))
}

/** One line, and one more for every further reason. */
function rows({ node, pcr, value, explained, changed, changes = [] }: Register): unknown[][] {
  const reasons = [...changes.map(reason), ...(explained ? [] : ['the value is not the one of the events in the log'])]
  const [first = '', ...others] = reasons
  const answer = changed === undefined ? 'unknown' : changed ? 'yes' : 'no'
  const shown = value === '' ? 'unused' : `${value.slice(0, shownDigits)}…`
  return [[node, pcr, shown, answer, first], ...others.map((other) => ['', '', '', '', other])]
}

function reason({ kind, type = '', subject = '', before = '', after = '' }: Difference): string {
  const what = subject === '' ? type : subject
  if (kind === 'added') return `added: ${what} (${after})`
  if (kind === 'removed') return `removed: ${what} (${before})`
  if (kind === 'changed') return `${what}: ${before} → ${after}`
  return kind === 'order' ? 'the same events in another order' : 'extended by something that is in no log'
}
