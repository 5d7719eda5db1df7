/**
 * `bun run build:rootfs`: builds every part that is not in the cache and packs the root file system twice:
 * `dist/rootfs.sqsh`, which is shipped, and `dist/rootfs.node.sqsh`, the same tree for container nodes on this machine.
 * `--fast` packs only the second; `--lock` rewrites debian.lock from the current archive;
 * `--binary=<file>` packs that binary instead of building one; `--kubernetes v1.35.4` takes another release of Kubernetes.
 * `--arch arm64` builds for that processor: `dist/rootfs-arm64.sqsh` and `dist/rootfs-arm64.node.sqsh`.
 * `--only kubernetes-images` makes its images instead, as files to serve to nodes with another release inside.
 */
import { parseArgs } from 'node:util'
import { failed, UsageError } from './build/failure.ts'
import { kubernetesRelease } from './build/kubernetes.ts'
import { buildKubernetesImages } from './build/kubernetes-images.ts'
import { buildRootfs } from './build/rootfs.ts'
import { targetOf } from './build/target.ts'

const flags = {
  arch: { type: 'string' },
  fast: { type: 'boolean' },
  lock: { type: 'boolean' },
  binary: { type: 'string' },
  kubernetes: { type: 'string' },
  only: { type: 'string' },
} as const

try {
  const { arch, fast, lock, binary, kubernetes: requested, only } = parseArgs({ options: flags }).values
  const kubernetes = kubernetesRelease(requested)
  const target = targetOf(arch)
  if (only === undefined) await buildRootfs({ nodesOnly: fast, relock: lock, binary, kubernetes, target })
  else if (only !== 'kubernetes-images') throw new UsageError(`--only "${only}": must be kubernetes-images`)
  else if (arch || fast || lock || binary) throw new UsageError('--only kubernetes-images goes with --kubernetes alone')
  else console.log(`"${await buildKubernetesImages(kubernetes)}" can be served with "talosctl image cache-serve --image-cache-path"`)
} catch (error) {
  failed(error)
}
