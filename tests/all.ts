/**
 * Runs everything that a release is tested with, one after another: the test command, and each runner of long stories, which write
 * their figures into bench/README.md. On two processors without KVM it takes most of a day.
 *
 *   sudo bun tests/all.ts [--list] [--only conformance,vm]
 */
import { readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { parseArgs } from 'node:util'

const root = join(import.meta.dir, '..')

/** The runners by name, in the order in which they run: the test command, then those of long stories by their folders. */
export function runners(): Map<string, string> {
  const folders = readdirSync(join(root, 'tests'), { withFileTypes: true }).filter((entry) => entry.isDirectory())
  const long = folders
    .flatMap(({ name }) => readdirSync(join(root, 'tests', name)).map((file) => `tests/${name}/${file}`))
    .filter((path) => basename(path) === 'all.ts')
    .sort()
  return new Map([['ci', 'tests/run.ts'], ...long.map((path): [string, string] => [basename(dirname(path)), path])])
}

/** Runs the chosen ones; returns the exit code. */
async function runAll(): Promise<number> {
  const { list, only } = parseArgs({ options: { list: { type: 'boolean' }, only: { type: 'string' } } }).values
  const all = runners()
  const names = only?.split(',') ?? [...all.keys()]
  const unknown = names.filter((name) => !all.has(name))
  if (unknown.length > 0) {
    console.error(`--only ${unknown.join(',')}: no such runner; there are ${[...all.keys()].join(', ')}`)
    return 64
  }
  const lines: string[] = []
  let failed = 0
  for (const name of names) {
    const path = all.get(name) ?? ''
    if (list) {
      console.log(`${name}\t${path}`)
      continue
    }
    console.log(`\n==== ${name}`)
    const started = performance.now()
    const code = await Bun.spawn([process.execPath, path], { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] }).exited
    if (code !== 0) failed++
    lines.push(`${code === 0 ? 'passed' : 'failed'}: ${name}: ${Math.round((performance.now() - started) / 1000)} s`)
  }
  if (!list) console.log(`\n${lines.join('\n')}\n${lines.length - failed} passed, ${failed} failed`)
  return failed === 0 ? 0 : 1
}

if (import.meta.main) process.exitCode = await runAll()
