/** The locked packages that the binary is bundled from. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import packageJson from '../../package.json'
import { repository } from './binary.ts'
import { hashOf } from './cache.ts'
import { HostError } from './host.ts'
import { task } from './progress.ts'
import { run } from './run.ts'

/** Checks that the pinned Bun runs this and that node_modules matches bun.lock. */
export async function installDependencies(): Promise<void> {
  const pinned = packageJson.packageManager.replace('bun@', '')
  if (Bun.version !== pinned)
    throw new HostError(`this is Bun ${Bun.version}: use version ${pinned}, for example "npx --yes bun@${pinned} run …"`)
  const stamp = join(repository, 'node_modules', '.ichor-lock')
  const wanted = hashOf(readFileSync(join(repository, 'bun.lock'), 'utf8'))
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return
  const shown = task('installing the locked packages')
  try {
    await run([process.execPath, 'install', '--frozen-lockfile'], { cwd: repository })
    writeFileSync(stamp, wanted)
    shown.done()
  } catch (error) {
    shown.failed()
    throw error
  }
}
