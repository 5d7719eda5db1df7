/**
 * Looks for inputs that parsers of outside data do not stand, guided by what of the code each input runs:
 * `bun tests/fuzz/guided.ts [--seconds 60] [--target NAME]`. Needs Node 22.15 or later, whose engine counts how often each block
 * has run.
 * What is found is kept below the cache folder and is where the next run begins; a fault ends the run with its input.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { BunPlugin } from 'bun'
import { targets } from './targets.ts'

const { values } = parseArgs({ options: { seconds: { type: 'string', default: '60' }, target: { type: 'string' } } })
const names = values.target === undefined ? Object.keys(targets) : [values.target]
for (const name of names)
  if (!Object.hasOwn(targets, name)) throw new Error(`no target "${name}": there are ${Object.keys(targets).join(', ')}`)

const node = Bun.which('node')
const version = node ? Bun.spawnSync([node, '--version']).stdout.toString().trim() : 'none'
if (!Bun.semver.satisfies(version.replace(/^v/, ''), '>=22.15.0')) throw new Error(`this needs Node 22.15 or later, there is ${version}`)

/** The one part of the runtime that parsers use and Node has not. */
const standIn: BunPlugin = {
  name: 'yaml',
  setup(build) {
    build.onResolve({ filter: /^bun$/ }, () => ({ path: 'bun', namespace: 'stand-in' }))
    build.onLoad({ filter: /.*/, namespace: 'stand-in' }, () => ({
      contents: `import * as YAML from ${JSON.stringify(Bun.resolveSync('yaml', import.meta.dir))}; export { YAML }`,
      loader: 'js',
    }))
  },
}

const corpus = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'ichor', 'fuzz')
const scratch = mkdtempSync(join(tmpdir(), 'ichor-fuzz-'))
let faults = 0
try {
  const built = await Bun.build({
    entrypoints: [join(import.meta.dir, 'search.ts')],
    target: 'node',
    outdir: scratch,
    plugins: [standIn],
  })
  if (!built.success) throw new Error(built.logs.join('\n'))
  for (const name of names) {
    const folder = join(corpus, name.replaceAll(' ', '-'))
    mkdirSync(folder, { recursive: true })
    const seconds = String(Number(values.seconds) / names.length)
    const search = Bun.spawn(['node', '--no-warnings', join(scratch, 'search.js'), name, folder, seconds], {
      stdout: 'inherit',
      stderr: 'inherit',
    })
    if ((await search.exited) !== 0) faults++
  }
} finally {
  rmSync(scratch, { recursive: true, force: true })
}
process.exitCode = faults === 0 ? 0 : 1
