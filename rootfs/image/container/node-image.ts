/** The system as a container image: what nodes run in Docker, in Podman, and as pods. */
import { rmSync } from 'node:fs'
import type { Segment } from '../../../src/oci/image.ts'
import { contentSize, sourceOf, type Tree, type TreeEntry } from '../../../src/programs/factory/root/tree.ts'
import { verifyTree } from '../../../src/programs/factory/root/verify.ts'
import { initHeap } from '../../../src/programs/node-supervisor/container-spec.ts'
import { gzippedLayer, writeImageArchive } from '../../../src/programs/talosctl/archive/image-archive.ts'
import { nodeImage } from '../../../src/release.ts'
import { tarPadding } from '../../../src/wire/tar/format.ts'
import { tarEnd, tarHeader } from '../../../src/wire/tar/write.ts'
import { assemble } from '../../build/assemble.ts'
import { withParts } from '../../build/rootfs.ts'
import type { Arch } from '../../build/target.ts'
import { addExtensions, unpackExtensions } from '../extensions/extensions.ts'
import { version } from '../release.ts'
import { addEmbedded, type RootOptions } from '../root.ts'

/** Where init finds out that it is in a container, whatever its environment (src/programs/init/container-mode.ts). */
const mark = '/usr/etc/in-container'

/** Builds what is missing and writes the image; returns the SPDX document of what is in it. */
export async function writeNodeImage(path: string, options: Omit<RootOptions, 'firmware'>): Promise<{ sbom: string }> {
  const { kubernetes, target, fast, relock, locked, extensions: images = [] } = options
  const { extensions, remove } = await unpackExtensions(images, target.arch)
  try {
    return await withParts({ kubernetes, target }, async ({ program, programs }) => {
      const { tree, sbom } = await assemble(program, programs, { kubernetes, target, relock, locked })
      tree.text('base', mark, '')
      addEmbedded(tree, options.embedConfig)
      await addExtensions(tree, extensions)
      verifyTree(tree)
      await archiveTree(path, tree, { kubernetes: kubernetes.version, level: fast ? 1 : 9, arch: target.arch })
      return { sbom }
    })
  } finally {
    remove()
  }
}

/** Writes a tree as an image of one layer. `level` is that of gzip. */
export async function archiveTree(
  path: string,
  tree: Tree,
  { kubernetes, level, arch = 'amd64' }: { kubernetes: string; level: number; arch?: Arch },
): Promise<void> {
  const layer = `${path}.layer`
  try {
    const labels = {
      'org.opencontainers.image.title': 'Ichor',
      'org.opencontainers.image.description': 'A Kubernetes operating system as a container',
      'org.opencontainers.image.version': version,
      'org.opencontainers.image.licenses': 'Apache-2.0',
      'dev.ichor.kubernetes.version': kubernetes,
    }
    const created = '1970-01-01T00:00:00Z'
    await writeImageArchive(path, {
      arch,
      layers: [await gzippedLayer(layer, treeSegments(tree), level)],
      config: {
        created,
        config: {
          Env: ['PATH=/usr/sbin:/usr/bin:/sbin:/bin', initHeap],
          Entrypoint: ['/sbin/init'],
          WorkingDir: '/',
          Labels: labels,
          StopSignal: 'SIGTERM',
        },
        history: [{ created, created_by: 'mkimage.sh' }],
      },
      annotations: labels,
      name: nodeImage,
    })
  } finally {
    rmSync(layer, { force: true })
  }
}

/** A tree as a tar. Hard links come last, behind what they lead to. */
export function treeSegments(tree: Tree): Segment[] {
  const entries = tree.entries()
  const links = entries.filter(({ linkTo }) => linkTo !== undefined)
  const others = entries.filter(({ linkTo }) => linkTo === undefined)
  return [...[...others, ...links].flatMap(entrySegments), { bytes: tarEnd }]
}

function entrySegments(entry: TreeEntry): Segment[] {
  const { type, mode, uid, gid, target, linkTo, bytes } = entry
  const header = { path: entry.path.slice(1), mode, uid, gid }
  if (linkTo !== undefined) return [{ bytes: tarHeader({ ...header, type: 'hardlink', target: linkTo.slice(1) }) }]
  if (type === 'dir') return [{ bytes: tarHeader({ ...header, type: 'directory' }) }]
  if (type === 'symlink') return [{ bytes: tarHeader({ ...header, type, target }) }]
  const size = contentSize(entry)
  const content: Segment = bytes ? { bytes } : { file: sourceOf(entry), offset: 0, length: size }
  return [{ bytes: tarHeader({ ...header, type, size }) }, content, { bytes: tarPadding(size) }]
}
