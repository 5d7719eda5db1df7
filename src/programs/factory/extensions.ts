/** The system extensions that schematics may name. */
import { FactoryError } from './factory-error.ts'
import { type Architecture, architectures, type Release } from './releases.ts'
import type { TreeEntry } from './root/tree.ts'
import type { Schematic } from './schematic.ts'

/** What an extension states about itself. */
export interface ExtensionMetadata {
  readonly name: string
  readonly version: string
  readonly author: string
  readonly description: string
  readonly compatibility: { readonly talos: { readonly version: string } }
  readonly extraInfo?: string
}

/** An extension that the operator offers. */
export interface OfferedExtension {
  /** Where its image is, as the operator named it. */
  readonly ref: string
  /** Of its image: another one is another extension. */
  readonly digest: string
  readonly metadata: ExtensionMetadata
  /** Why it is not for a release; undefined when it is. */
  unfit(release: Pick<Release, 'version' | 'arch'>): string | undefined
  /** Reads its files for an architecture into a folder. Throws FactoryError. */
  unpack(folder: string, arch: Architecture): Promise<ExtensionFiles>
}

/** The files of an extension, by their paths on a machine. */
export type ExtensionFiles = readonly (Pick<TreeEntry, 'path' | 'mode' | 'source' | 'bytes' | 'target'> & {
  readonly type: TreeEntry['type'] | 'other'
})[]

/** Those for the releases of a version. */
export const offeredFor = (offered: readonly OfferedExtension[], version: string): OfferedExtension[] =>
  offered.filter((each) => architectures.some((arch) => each.unfit({ version, arch }) === undefined))

/** The extensions of a schematic, in its order. Throws FactoryError with a line for the first that cannot be had. */
export function chosenExtensions(
  offered: readonly OfferedExtension[],
  release: Pick<Release, 'version' | 'arch'>,
  { customization }: Schematic,
): OfferedExtension[] {
  const names = customization.systemExtensions?.officialExtensions ?? []
  const twice = names.find((name, at) => names.indexOf(name) !== at)
  if (twice !== undefined) throw new FactoryError(400, `extension "${twice.slice(0, 100)}" is listed twice`)
  return names.map((name) => {
    const known = offered.filter(({ metadata }) => metadata.name === name)
    const fitting = known.find((each) => each.unfit(release) === undefined)
    if (fitting) return fitting
    const [other] = known
    if (other) throw new FactoryError(400, (other.unfit(release) ?? '').replaceAll('\n', '; '))
    const held = offered.filter((each) => each.unfit(release) === undefined).map(({ metadata }) => metadata.name)
    const others = held.length > 0 ? `but ${held.slice(0, 20).join(', ')}` : 'nor any other: start the factory with --extensions'
    throw new FactoryError(400, `extension "${name.slice(0, 100)}" is not held here, ${others}`)
  })
}
