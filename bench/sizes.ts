/** How large the packed root file systems and the binary are: `bun bench/sizes.ts`. */
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'

const dist = join(import.meta.dir, '../dist')
for (const [name, what] of [
  ['rootfs.sqsh', 'what is shipped, the whole control plane inside'],
  ['rootfs.node.sqsh', 'the same tree for container nodes, packed to be read quickly'],
  ['ichor', 'the binary'],
] as const) {
  const path = join(dist, name)
  if (existsSync(path)) console.log(`${(statSync(path).size / 1e6).toFixed(1).padStart(7)} MB  dist/${name}: ${what}`)
  else console.log(`      not built  dist/${name}: ${what}`)
}
