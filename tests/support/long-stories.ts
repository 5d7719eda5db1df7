/** Runs the long stories of a folder and writes their figures into a table of bench/README.md. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import type { Figure } from './figures.ts'

const root = join(import.meta.dir, '../..')
const page = join(root, 'bench/README.md')

/** Where stories are, and where their table is. */
export interface LongStories {
  /** Below tests/. */
  folder: string
  /** The table is between `<!-- marker -->` and `<!-- end of marker -->`. */
  marker: string
  /** Names, comma separated, of the stories to run. Default: all. */
  only?: string | undefined
  /** Variables that the stories get. */
  env?: Readonly<Record<string, string>>
}

/** Runs the stories; returns the exit code. */
export async function runLongStories({ folder, marker, only: names, env }: LongStories): Promise<number> {
  const only = names?.split(',')
  const stories = readdirSync(join(root, 'tests', folder))
    .filter((file) => file.endsWith('.story.ts'))
    .sort()
  const unknown = only?.filter((name) => !stories.includes(`${name}.story.ts`)) ?? []
  if (unknown.length > 0) {
    console.error(`--only ${unknown.join(',')}: no such story; there are ${stories.map((file) => basename(file, '.story.ts')).join(', ')}`)
    return 64
  }
  const scratch = mkdtempSync(join(tmpdir(), 'ichor-figures-'))
  const stamp = `${new Date().toISOString().slice(0, 10)}, ${revision()}, load ${Math.round(loadavg()[0] ?? 0)}`
  let failed = 0
  for (const file of stories.filter((each) => !only || only.includes(basename(each, '.story.ts')))) {
    console.log(`\n== ${file}`)
    const figures = join(scratch, `${file}.jsonl`)
    const child = Bun.spawn([process.execPath, 'test', `./tests/${folder}/${file}`, '--timeout', '7200000'], {
      cwd: root,
      stdout: 'inherit',
      stderr: 'inherit',
      env: { ...process.env, ICHOR_FIGURES: figures, ...env },
    })
    const result = (await child.exited) === 0 ? 'passed' : 'failed'
    if (result === 'failed') failed++
    const lines = existsSync(figures) ? readFileSync(figures, 'utf8').trim().split('\n') : []
    const measured = lines.map((line) => JSON.parse(line) as Figure)
    const story = basename(file, '.story.ts')
    record(marker, story, [{ story, what: 'result', value: result }, ...measured], stamp)
  }
  rmSync(scratch, { recursive: true, force: true })
  return failed === 0 ? 0 : 1
}

/** The commit that was measured; with a plus sign when files have changed since. */
function revision(): string {
  const git = (...args: string[]) =>
    Bun.spawnSync(['git', ...args], { cwd: root })
      .stdout.toString()
      .trim()
  return git('rev-parse', '--short', 'HEAD') + (git('status', '--porcelain', '--untracked-files=no') ? '+' : '')
}

/** Replaces the rows of one story in the table. */
function record(marker: string, story: string, figures: readonly Figure[], stamp: string): void {
  const text = readFileSync(page, 'utf8')
  const markers = [`<!-- ${marker} -->`, `<!-- end of ${marker} -->`] as const
  const [start, end] = markers.map((each) => text.indexOf(each)) as [number, number]
  if (start < 0 || end < start) throw new Error(`bench/README.md has no ${markers.join(' … ')}`)
  const head = ['| story | what | figure | date, commit, load |', '|---|---|---|---|']
  const others = text
    .slice(start, end)
    .split('\n')
    .filter((line) => line.startsWith('| ') && line !== head[0] && !line.startsWith(`| ${story} |`))
  const own = figures.map(({ what, value }) => `| ${story} | ${what} | ${value} | ${stamp} |`)
  const table = [...head, ...[...others, ...own].sort((a, b) => (a.split('|')[1] ?? '').localeCompare(b.split('|')[1] ?? ''))].join('\n')
  writeFileSync(page, `${text.slice(0, start)}${markers[0]}\n${table}\n${text.slice(end)}`)
}
