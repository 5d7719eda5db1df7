/**
 * The options of the hardened kernel: merged into Debian's sources by the kernel's own scripts, and judged.
 *
 *   bun rootfs/kernel.ts [--config FILE] [--unlocked | --lock]
 */
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { failed } from './build/failure.ts'
import { buildPackages, prepareHost } from './build/host.ts'
import { task } from './build/progress.ts'
import { table } from './build/size-table.ts'
import { configure, configurePackages, takeSource, unpackSource } from './kernel/configure.ts'

const { values: flags } = parseArgs({
  options: { config: { type: 'string' }, unlocked: { type: 'boolean', default: false }, lock: { type: 'boolean', default: false } },
})

try {
  await prepareHost([...buildPackages, ...configurePackages])
  const shown = task('the options of the hardened kernel')
  const work = mkdtempSync(join(tmpdir(), 'ichor-kernel-'))
  try {
    const source = await takeSource({ relock: flags.lock, locked: !flags.unlocked && !flags.lock }, (what) => shown.at(what))
    shown.at('unpacking the sources')
    const tree = await unpackSource(source, work)
    shown.at('merging the options')
    const { options, findings } = await configure(tree)
    if (flags.config) copyFileSync(join(tree, '.config'), flags.config)
    const count = (value: string) => [...options.values()].filter((each) => each === value).length
    shown.done(`${source.version}: ${count('y')} built in, ${count('m')} modules`)
    const unmet = findings.filter(({ met }) => !met)
    const rows = unmet.map(({ requirement, found }) => [requirement.names[0] ?? '', requirement.wanted, found, requirement.reason ?? ''])
    console.log(`${table([['OPTION', 'WANTED', 'IS', 'WHY'], ...rows])}\n`)
    console.log(`${findings.length - unmet.length} of ${findings.length} requirements are met, ${unmet.length} are not, with a reason each`)
  } catch (error) {
    shown.failed()
    throw error
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
} catch (error) {
  failed(error)
}
