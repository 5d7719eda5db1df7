/**
 * Runs every story that needs an emulated machine, one after another, and writes the results into bench/README.md.
 *
 *   bun tests/vm/all.ts [--only upgrade,reset] [--kills 10]
 *
 * The state of a story is kept in $ICHOR_VM_STATE (default: a folder for temporary files), with the consoles; a story that was
 * interrupted continues from there.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { parseArgs } from 'node:util'
import { readReport, type TestResult } from '../report.ts'

const root = join(import.meta.dir, '../..')
const timeout = 4 * 3600_000
const markers = ['<!-- machines -->', '<!-- end of machines -->'] as const

const { values: flags } = parseArgs({ options: { only: { type: 'string' }, kills: { type: 'string' } } })
const only = flags.only?.split(',')
if (flags.kills !== undefined && !/^[1-9]\d{0,3}$/.test(flags.kills)) {
  console.error(`--kills "${flags.kills}": give a number from 1 to 9999`)
  process.exit(64)
}

/** Every story that starts machines: all of this folder and those below it, and those of other folders whose names say so. */
function stories(): string[] {
  const there = (folder: string, ending: string) =>
    readdirSync(join(root, folder), { encoding: 'utf8', recursive: true })
      .filter((file) => file.endsWith(ending))
      .sort()
      .map((file) => `./${folder}/${file}`)
  return [...there('tests/vm', '.story.ts'), ...there('tests/network', '-vm.story.ts')]
}

const nameOf = (file: string) => basename(file, '.story.ts')

interface StoryResult {
  name: string
  tests: TestResult[]
  seconds: number
  load: number
}

async function runStory(file: string, state: string): Promise<StoryResult> {
  const name = nameOf(file)
  console.log(`\n== ${name}`)
  const report = join(state, `${name}.xml`)
  rmSync(report, { force: true })
  const started = performance.now()
  const argv = [process.execPath, 'test', '--timeout', String(timeout), '--reporter=junit', `--reporter-outfile=${report}`, file]
  const env = { ...process.env, ICHOR_VM_STATE: state, ...(flags.kills && { ICHOR_VM_KILLS: flags.kills }) }
  const child = Bun.spawn(argv, { cwd: root, stdin: 'ignore', stdout: 'inherit', stderr: 'inherit', env })
  const code = await child.exited
  const tests = existsSync(report) ? readReport(readFileSync(report, 'utf8')) : []
  // A story that ends before its first test counts as failed.
  if (code !== 0 && !tests.some(({ result }) => result === 'failed'))
    tests.push({ name: 'the story as a whole', result: 'failed', seconds: 0 })
  return { name, tests, seconds: (performance.now() - started) / 1000, load: loadavg()[0] ?? 0 }
}

function rowOf({ name, tests, seconds, load }: StoryResult): string {
  const count = (result: TestResult['result']) => tests.filter((each) => each.result === result).length
  const failed = tests.filter(({ result }) => result === 'failed').map((each) => each.name)
  const verdict =
    failed.length > 0 ? `failed: ${failed.join('; ')}` : count('skipped') > 0 ? `passed, ${count('skipped')} skipped` : 'passed'
  const kills = flags.kills && name === 'power-cuts' ? `, ${flags.kills} cuts` : ''
  return `| ${name} | ${count('passed')} of ${tests.length}${kills} | ${Math.round(seconds)} s | ${load.toFixed(1)} | ${verdict} |`
}

/** Writes the rows of this run into the table; the rows of other stories are kept. */
function record(results: readonly StoryResult[]): void {
  const file = join(root, 'bench/README.md')
  const text = readFileSync(file, 'utf8')
  const [start, end] = markers.map((mark) => text.indexOf(mark)) as [number, number]
  if (start < 0 || end < start) throw new Error(`"${file}" has no place for the table between ${markers.join(' and ')}`)
  const before = text
    .slice(start + markers[0].length, end)
    .split('\n')
    .filter((line) => /^\| [a-z]/.test(line) && !line.startsWith('| story'))
  const rows = new Map(before.map((line) => [line.split('|')[1]?.trim() ?? '', line]))
  for (const each of results) rows.set(each.name, rowOf(each))
  const table = [
    '| story | scenarios | time | load after | |',
    '|---|---|---|---|---|',
    ...[...rows].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row),
  ]
  writeFileSync(file, `${text.slice(0, start)}${markers[0]}\n\n${table.join('\n')}\n\n${text.slice(end)}`)
}

const selected = stories().filter((file) => !only || only.includes(nameOf(file)))
const unknown = only?.filter((name) => !stories().some((file) => nameOf(file) === name)) ?? []
if (unknown.length > 0) {
  console.error(`there is no story ${unknown.join(', ')}: there are ${stories().map(nameOf).join(', ')}`)
  process.exit(64)
}
const state = process.env.ICHOR_VM_STATE ?? join(tmpdir(), 'ichor-vm')
mkdirSync(state, { recursive: true })
const results: StoryResult[] = []
for (const file of selected) {
  results.push(await runStory(file, state))
  record(results)
}
console.log('')
for (const each of results) console.log(rowOf(each))
process.exit(results.some(({ tests }) => tests.some(({ result }) => result === 'failed')) ? 1 : 0)
