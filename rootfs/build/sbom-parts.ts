/** Gathers what the root file system is made of, for its SBOM. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { SbomPart } from '../../src/oci/spdx.ts'
import type { LockedPackage } from '../debian/lock.ts'
import { repository } from './binary.ts'
import { hashFile } from './cache.ts'
import { foreignPackages, type GoRecipe, goToolchain, linkedModules } from './go.ts'
import { run } from './run.ts'
import { type Target, targets } from './target.ts'

/** Bun's lock file, as far as it is read here. */
interface BunLock {
  packages: Record<string, [spec: string, ...rest: unknown[]]>
}

/** The binary with the runtime and the packages bundled into it. */
export async function binaryPart(path: string, version: string, packages: readonly string[]): Promise<SbomPart> {
  const { sha256 } = await hashFile(path)
  const lock = Bun.JSONC.parse(readFileSync(join(repository, 'bun.lock'), 'utf8')) as BunLock
  const contains: SbomPart[] = [
    {
      name: 'bun',
      version: Bun.version,
      purl: `pkg:npm/bun@${Bun.version}`,
      source: `Bun's runtime, commit ${Bun.revision}`,
      license: 'MIT',
    },
  ]
  for (const name of packages) {
    const [spec] = lock.packages[name] ?? []
    if (!spec) throw new Error(`package "${name}" is in the binary and not in bun.lock: run "bun install"`)
    const version = spec.slice(spec.lastIndexOf('@') + 1)
    contains.push({ name, version, purl: `pkg:npm/${name.replace('@', '%40')}@${version}`, source: 'npm package, as locked in bun.lock' })
  }
  return {
    name: 'ichor',
    version,
    source: 'this repository',
    sha256,
    license: 'Apache-2.0',
    contains: contains.sort((a, b) => (a.name < b.name ? -1 : 1)),
  }
}

/** A program written in Go with its modules, the toolchain's library, and what is linked into it from the build machine. */
export async function goPart(recipe: GoRecipe, folder: string, target: Target = targets.amd64): Promise<SbomPart> {
  const { sha256 } = await hashFile(join(folder, recipe.name))
  const modules = await linkedModules(recipe, folder)
  const contains = modules.map(
    ({ path, version: each, sum }): SbomPart => ({
      name: path,
      version: each,
      purl: `pkg:golang/${path}@${each}`,
      source: 'Go module',
      sum,
    }),
  )
  const library: SbomPart = {
    name: 'go',
    version: goToolchain.slice(2),
    purl: `pkg:golang/stdlib@${goToolchain.slice(2)}`,
    source: 'the Go toolchain and its library',
    license: 'BSD-3-Clause',
  }
  return {
    name: recipe.name,
    version: recipe.version,
    source: `rootfs/${recipe.module}, linked from Go modules`,
    sha256,
    contains: [library, ...contains, ...(recipe.c ? await linkedLibraries(recipe.c.packages, target) : [])],
  }
}

/** A program of our own. */
export async function programPart({
  name,
  version,
  file,
  source,
}: Record<'name' | 'version' | 'file' | 'source', string>): Promise<SbomPart> {
  const { sha256 } = await hashFile(file)
  return { name, version, source, sha256, license: 'Apache-2.0' }
}

/** What is linked statically: the C library and the libraries of a recipe. */
async function linkedLibraries(packages: readonly string[], target: Target): Promise<SbomPart[]> {
  if (target.arch === 'amd64') return linkedFromHost(['libc6-dev', ...packages])
  const taken = await foreignPackages(packages, target)
  return [...(await linkedFromHost(['libc6-dev-arm64-cross'])), ...debianPartsOf(taken, target, 'Debian package, linked statically')]
}

/** Debian packages on the build machine whose archives are linked into a program. */
async function linkedFromHost(names: readonly string[]): Promise<SbomPart[]> {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: dpkg-query fills these in
  const lines = await run(['dpkg-query', '-W', '-f', '${Package} ${Version}\n', ...names])
  return lines
    .trim()
    .split('\n')
    .map((line) => {
      const [name = '', version = ''] = line.split(' ')
      return { name, version, purl: debianUrl(name, version), source: 'Debian package of the build machine, linked statically' }
    })
}

const debianUrl = (name: string, version: string, { arch }: Target = targets.amd64) =>
  `pkg:deb/debian/${name}@${encodeURIComponent(version)}?arch=${arch}`

/** The Debian packages that files were taken from. */
export function debianPartsOf(
  packages: readonly LockedPackage[],
  target: Target = targets.amd64,
  source = 'Debian package; some of its files',
): SbomPart[] {
  return packages
    .map(
      ({ name, version, sha256 }): SbomPart => ({
        name,
        version,
        sha256,
        purl: debianUrl(name, version, target),
        source,
      }),
    )
    .sort((a, b) => (a.name < b.name ? -1 : 1))
}
