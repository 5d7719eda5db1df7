/**
 * Every story in which programs of the field judge ours, also those whose programs take minutes to build.
 *
 *   sudo bun tests/interop/all.ts
 */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dir, '../..')
const stories = (folder: string) =>
  readdirSync(join(root, folder))
    .filter((file) => file.endsWith('.story.ts'))
    .sort()
    .map((file) => `./${folder}/${file}`)

let failed = 0
for (const file of [...stories('tests/interop'), ...stories('tests/interop/field')]) {
  console.log(`\n== ${file}`)
  const child = Bun.spawn([process.execPath, 'test', file, '--timeout', '900000'], { cwd: root, stdout: 'inherit', stderr: 'inherit' })
  if ((await child.exited) !== 0) failed++
}
process.exit(failed === 0 ? 0 : 1)
