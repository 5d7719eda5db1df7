/**
 * Runs the Kubernetes conformance suite on a cluster of one control plane and two workers made for it, without images from
 * outside, and writes its row into bench/README.md when the whole suite ran.
 *
 *   bun tests/conformance/run.ts [--focus PATTERN] [--skip PATTERN] [--procs 6] [--output FOLDER] [--keep]
 *
 * The folder (default: dist/conformance) then holds what the certification programme requires: e2e.log, junit_01.xml and
 * PRODUCT.yaml. It ends with exit code 1 when a test did not pass.
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { run } from '../../rootfs/build/run.ts'
import { productYaml } from '../../src/programs/talosctl/conformance/product.ts'
import { release } from '../../src/release.ts'
import { release as kubernetes } from './programs.ts'
import { ConformanceCluster, type SpecResult } from './suite.ts'

const root = join(import.meta.dir, '../..')
const markers = ['<!-- conformance -->', '<!-- end of conformance -->'] as const

const { values: flags } = parseArgs({
  options: {
    focus: { type: 'string', multiple: true },
    skip: { type: 'string', multiple: true },
    procs: { type: 'string', default: '6' },
    output: { type: 'string', default: join(root, 'dist/conformance') },
    keep: { type: 'boolean' },
  },
})
const procs = Number(flags.procs)
if (!Number.isInteger(procs) || procs < 1 || procs > 64) {
  console.error(`--procs "${flags.procs}": give a number from 1 to 64`)
  process.exit(64)
}
const whole = !flags.focus && !flags.skip
const output = resolve(flags.output)
rmSync(output, { recursive: true, force: true })

const made = await ConformanceCluster.create('conformance')
const begun = performance.now()
let specs: SpecResult[]
try {
  specs = await made.run({ focus: flags.focus ?? ['\\[Conformance\\]'], ...(flags.skip && { skip: flags.skip }), procs }, output)
} finally {
  if (flags.keep) console.log(`the cluster is kept: KUBECONFIG=${made.cluster.env.KUBECONFIG}`)
  else await made.close()
}
const seconds = Math.round((performance.now() - begun) / 1000)
writeFileSync(join(output, 'PRODUCT.yaml'), productYaml(release.tag))
const failed = specs.filter(({ passed }) => !passed)
for (const { name, reason } of failed) console.log(`not passed: ${name}: ${reason}`)
console.log(`${specs.length - failed.length} of ${specs.length} passed in ${seconds} s; the reports are in "${output}"`)
if (whole) record(await row())
process.exit(failed.length === 0 && specs.length > 0 ? 0 : 1)

async function row(): Promise<string> {
  const commit = (await run(['git', 'rev-parse', '--short', 'HEAD'], { cwd: root })).trim()
  const day = new Date().toISOString().slice(0, 10)
  return `| v${kubernetes.version} | ${day}, \`${commit}\` | ${specs.length - failed.length} | ${failed.length} | ${seconds} s | ${failed.map(({ name }) => name).join('; ')} |`
}

/** Puts the row of this release of Kubernetes into the table, in place of the one before. */
function record(line: string): void {
  const file = join(root, 'bench/README.md')
  const text = readFileSync(file, 'utf8')
  const [start, end] = markers.map((mark) => text.indexOf(mark)) as [number, number]
  if (start < 0 || end < start) throw new Error(`"${file}" has no place for the table between ${markers.join(' and ')}`)
  const kept = text
    .slice(start, end)
    .split('\n')
    .filter((each) => each.startsWith('| v') && each.split('|')[1] !== line.split('|')[1])
  const head = ['| Kubernetes | date, commit | passed | failed | time | not passed |', '|---|---|---|---|---|---|']
  writeFileSync(file, `${text.slice(0, start)}${markers[0]}\n\n${[...head, ...kept, line].sort(byRow).join('\n')}\n\n${text.slice(end)}`)
}

function byRow(a: string, b: string): number {
  return a.startsWith('| v') && b.startsWith('| v') ? (a < b ? -1 : 1) : 0
}
