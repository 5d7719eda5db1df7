/**
 * The Kubernetes conformance suite: a selection of it with the commands of talosctl that run it inside a cluster, then the whole, which
 * writes its row into bench/README.md.
 *
 *   sudo bun tests/conformance/all.ts
 */
import { join } from 'node:path'

const root = join(import.meta.dir, '../..')
const steps = [
  ['tests/conformance/prepare.ts'],
  ['test', './tests/conformance/smoke.story.ts', '--timeout', '900000'],
  ['tests/conformance/run.ts'],
]

let failed = 0
for (const step of steps) {
  const child = Bun.spawn([process.execPath, ...step], { cwd: root, stdout: 'inherit', stderr: 'inherit' })
  if ((await child.exited) !== 0) failed++
}
process.exit(failed === 0 ? 0 : 1)
