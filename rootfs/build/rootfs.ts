/** The whole build, from nothing to images in dist/. */
import { existsSync, linkSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { xz, zstd } from '../squashfs/compressor.ts'
import { assemble, lockPathOf } from './assemble.ts'
import { buildBinary, dist, linkTo, placeFile } from './binary.ts'
import { type BuiltProgram, buildPrograms, fileOfProgram, programNamed } from './built-programs.ts'
import { hashFile, hashOf } from './cache.ts'
import { installDependencies } from './dependencies.ts'
import { buildPackages, crossPackagesOf, prepareHost } from './host.ts'
import { type KubernetesRelease, kubernetesReleases } from './kubernetes.ts'
import { fastest, pack, smallest } from './pack.ts'
import { formatSize, formatTime } from './progress.ts'
import { pruneCache } from './prune.ts'
import { sizeRows, sizeTable } from './size-table.ts'
import { type Target, targets } from './target.ts'

/** What is shipped: as small as it gets. */
const shippedOf = ({ suffix }: Target) => ({ name: `rootfs${suffix}.sqsh`, blockSize: smallest.blockSize })

/** The same tree for container nodes on this machine, where reading fast matters more than size. */
const forNodesOf = ({ suffix }: Target) => ({ name: `rootfs${suffix}.node.sqsh`, ...fastest })

/** Choices of a build. */
export interface RootfsOptions {
  /** Only the image for container nodes. */
  nodesOnly?: boolean | undefined
  /** Rewrite debian.lock from the current archive. */
  relock?: boolean | undefined
  /** Pack this binary instead of building one. */
  binary?: string | undefined
  kubernetes?: KubernetesRelease
  target?: Target
}

/** Builds and packs what has changed. */
export async function buildRootfs({
  nodesOnly = false,
  relock = false,
  binary,
  kubernetes = kubernetesReleases[0],
  target = targets.amd64,
}: RootfsOptions = {}): Promise<void> {
  const started = performance.now()
  const took = () => formatTime(performance.now() - started)
  const [shipped, forNodes] = [shippedOf(target), forNodesOf(target)]
  await withParts({ binary, kubernetes, target }, async ({ program, programs, inputs }) => {
    const wanted = nodesOnly ? [forNodes.name] : [forNodes.name, shipped.name]
    if (!relock && wanted.every((name) => isFrom(name, inputs))) {
      console.log(
        `${wanted.map((name) => `dist/${name} (${formatSize(Bun.file(join(dist, name)).size)})`).join(', ')}: nothing has changed, ${took()}`,
      )
      return
    }
    const { tree, sbom, images } = await assemble(program, programs, { kubernetes, target, relock })
    const entries = tree.entries()
    let stored = await pack(forNodes.name, entries, zstd(forNodes.level), forNodes.blockSize)
    stamp(forNodes.name, inputs)
    if (!nodesOnly) {
      stored = await pack(shipped.name, entries, await xz(shipped.blockSize, target), shipped.blockSize)
      stamp(shipped.name, inputs)
    }
    writeFileSync(join(dist, `rootfs${target.suffix}.spdx.json`), sbom)
    pruneCache()
    if (!nodesOnly) console.log(sizeTable(sizeRows(tree, stored)))
    console.log(`${images} container images inside, ${took()} in all`)
  })
}

/** Everything a tree is assembled from. */
export interface BuiltParts {
  /** The binary, under a name that no other build replaces. */
  program: string
  programs: readonly BuiltProgram[]
  /** Hash of all that decides about the tree. */
  inputs: string
}

/** Builds what is missing and hands it to `use`. */
export async function withParts<T>(
  { binary, kubernetes, target = targets.amd64 }: { binary?: string | undefined; kubernetes: KubernetesRelease; target?: Target },
  use: (built: BuiltParts) => Promise<T>,
): Promise<T> {
  await installDependencies()
  await prepareHost([...buildPackages, ...crossPackagesOf(target)])
  const program = binary ?? (await buildBinary(kubernetes, target)).path
  const programs = await buildPrograms(kubernetes, target)
  if (target.arch === 'amd64') {
    linkTo(fileOfProgram(programNamed(programs, 'runc')), join(dist, 'runc'))
    // Tools copy this file into pods, where a link would lead nowhere.
    placeFile(fileOfProgram(programNamed(programs, 'kubectl')), join(dist, 'kubectl'))
  }
  const lockPath = lockPathOf(target)

  // Another build may replace the binary meanwhile, so it is held under a name of our own.
  sweep()
  const held = join(dist, `.packing-${process.pid}`)
  rmSync(held, { force: true })
  linkSync(program, held)
  try {
    const { sha256 } = await hashFile(held)
    const inputs = hashOf({
      sha256,
      programs: programs.map(fileOfProgram),
      lock: existsSync(lockPath) && readFileSync(lockPath, 'utf8'),
      kubernetes: kubernetes.version,
      recipes: recipes(),
    })
    return await use({ program: held, programs, inputs })
  } finally {
    rmSync(held, { force: true })
  }
}

/** Takes away what builds that were killed have left in dist/. */
function sweep(): void {
  for (const name of readdirSync(dist)) {
    const pid = name.match(/^(?:\.packing-|\.build-|rootfs[a-z0-9.-]*\.sqsh\.)(\d+)$/)?.[1]
    if (pid && !existsSync(`/proc/${pid}`)) rmSync(join(dist, name), { recursive: true, force: true })
  }
}

const stampOf = (name: string) => join(dist, `.${name}-inputs`)

function isFrom(name: string, inputs: string): boolean {
  return existsSync(join(dist, name)) && existsSync(stampOf(name)) && readFileSync(stampOf(name), 'utf8') === inputs
}

function stamp(name: string, inputs: string): void {
  mkdirSync(dist, { recursive: true })
  writeFileSync(stampOf(name), inputs)
}

/** Hashes of what decides how parts are put together. */
export function recipes(): Record<string, string> {
  const root = join(import.meta.dir, '..')
  const own = (readdirSync(root, { recursive: true }) as string[])
    .filter((name) => /\.(ts|cil)$/.test(name))
    .map((name) => join(root, name))
  const shared = ['oci/layer.ts', 'oci/segments.ts', 'wire/tar/format.ts', 'wire/tar/write.ts'].map((name) => join(root, '../src', name))
  return Object.fromEntries([...own.sort(), ...shared].map((path) => [relative(root, path), hashOf(readFileSync(path))]))
}
