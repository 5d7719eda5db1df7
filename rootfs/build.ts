/**
 * `bun run build:rootfs`: builds every part that is not in the cache and packs the root file system twice:
 * `dist/rootfs.sqsh`, which is shipped, and `dist/rootfs.node.sqsh`, the same tree for container nodes on this machine.
 * `--fast` packs only the second; `--lock` rewrites debian.lock from the current archive;
 * `--binary=<file>` packs that binary instead of building one.
 */
import { parseArgs } from 'node:util'
import { failed } from './build/failure.ts'
import { buildRootfs } from './build/rootfs.ts'

try {
  const { values } = parseArgs({ options: { fast: { type: 'boolean' }, lock: { type: 'boolean' }, binary: { type: 'string' } } })
  await buildRootfs({ nodesOnly: values.fast, relock: values.lock, binary: values.binary })
} catch (error) {
  failed(error)
}
