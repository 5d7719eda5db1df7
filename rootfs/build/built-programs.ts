/** Every program that is built here, from the cache or from source, and what follows from it: its place in the tree and in the SBOM. */
import { join } from 'node:path'
import type { SbomPart } from '../../src/oci/spdx.ts'
import type { Tree } from '../../src/programs/factory/root/tree.ts'
import { exclusive } from './exclusive.ts'
import { buildFreestanding, type FreestandingProgram, isFreestanding, sourceHash, sourceOf } from './freestanding.ts'
import { buildGo, type GoRecipe, type ImagePlace } from './go.ts'
import { goPrograms, kubectl, releases } from './go-recipes.ts'
import type { KubernetesRelease } from './kubernetes.ts'
import { present } from './present.ts'
import { goPart, programPart } from './sbom-parts.ts'
import { type Target, targets } from './target.ts'

/** A program as it was built. */
export interface BuiltProgram {
  name: string
  version: string
  /** Folder on the build machine; the program in it has its name. */
  folder: string
  /** Absent for one that only the machine that builds uses. */
  image?: ImagePlace | undefined
  /** What it was built from, if that was Go. */
  recipe?: GoRecipe
}

/** Where pause lies in the root file system. */
export const pausePath = '/usr/libexec/ichor/pause'
/** VMware's guestinfo is read through a port that only amd64 has. */
const guestinfoPath = '/usr/libexec/ichor/guestinfo'

/** Builds what is missing; one build at a time. kubectl is built for the machine that builds, and only with a system that it can run. */
export async function buildPrograms(kubernetes: KubernetesRelease, target: Target = targets.amd64): Promise<BuiltProgram[]> {
  return exclusive('parts', async () => {
    const built: BuiltProgram[] = []
    for (const recipe of [...goPrograms(kubernetes), ...(target.arch === 'amd64' ? [kubectl(kubernetes)] : [])]) {
      const { name, version, image } = recipe
      built.push({ name, version, image, recipe, folder: (await buildGo(recipe, target)).folder })
    }
    const add = async (name: FreestandingProgram, version: string, path: string) =>
      built.push({ name, version, image: { path }, folder: (await buildFreestanding(name, target)).folder })
    await add('pause', releases.pause, pausePath)
    if (target.arch === 'amd64') await add('guestinfo', releases.guestinfo, guestinfoPath)
    return built
  })
}

/** The file of a program on the build machine. */
export const fileOfProgram = ({ name, folder }: BuiltProgram): string => join(folder, name)

/** The program of that name. */
export const programNamed = (programs: readonly BuiltProgram[], name: string): BuiltProgram =>
  present(
    programs.find((each) => each.name === name),
    `program "${name}"`,
  )

/** Puts the programs that have a place in the image there, under all their names. */
export function addPrograms(tree: Tree, programs: readonly BuiltProgram[]): void {
  for (const program of programs) {
    if (!program.image) continue
    const { name } = program
    const { path, links = [], hardLinks = [] } = program.image
    const folder = path.slice(0, path.lastIndexOf('/'))
    tree.file(name, path, fileOfProgram(program), 0o755)
    for (const link of links) tree.link(name, `${folder}/${link}`, path.slice(folder.length + 1))
    for (const link of hardLinks) tree.add({ path: `${folder}/${link}`, type: 'file', mode: 0o755, linkTo: path, part: name })
  }
}

/** The parts of the SBOM for the programs that are in the image. */
export async function programParts(programs: readonly BuiltProgram[], target: Target = targets.amd64): Promise<SbomPart[]> {
  const inside = programs.filter(({ image }) => image !== undefined)
  return Promise.all(
    inside.map((program) => {
      if (program.recipe) return goPart(program.recipe, program.folder, target)
      const { name } = program
      if (!isFreestanding(name)) throw new Error(`program "${name}": what it was built from is not known`)
      return programPart({ ...program, file: fileOfProgram(program), source: `${sourceOf(name)}, SHA-256 ${sourceHash(name)}` })
    }),
  )
}
