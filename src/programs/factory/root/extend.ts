/** The root file system of a release with the files of system extensions, which lie behind its own data. */

import { type Stretch, withStretch } from '../build/read-file.ts'
import { writeFile } from '../build/write-file.ts'
import type { ExtensionFiles, ExtensionMetadata } from '../extensions.ts'
import { FactoryError } from '../factory-error.ts'
import { pressOf, unpackerOf } from './compression.ts'
import { SquashfsError } from './error.ts'
import { readSquashfsBase } from './read.ts'
import { Tree, TreeError } from './tree.ts'
import { VerifyError, verifyTree } from './verify.ts'
import { appendVerity, type Verity } from './verity.ts'
import { writeSquashfs } from './writer.ts'

/** An extension with its files. */
export interface Extension {
  readonly metadata: ExtensionMetadata
  readonly files: ExtensionFiles
}

/** Where a node finds which extensions its image has. */
export const listPath = '/etc/extensions.yaml'
const modulesFolder = '/usr/lib/modules/'

/** Writes the root of a release, of which `dataBlocks` are its file system, with extensions to a file, and its tree of hashes behind it. Throws FactoryError. */
export async function extendRoot(
  path: string,
  root: Stretch,
  { dataBlocks }: Verity,
  { extensions, signal }: { extensions: readonly Extension[]; signal: AbortSignal },
): Promise<Verity> {
  try {
    const base = await withStretch(root, (read) => readSquashfsBase(read, dataBlocks * 4096, unpackerOf))
    const tree = new Tree()
    for (const entry of base.entries) tree.add(entry)
    const contents = new Map(base.contents)
    addFiles(tree, extensions)
    tree.replace('the list of extensions', listPath, Buffer.from(listOf(extensions)))
    contents.delete(listPath)
    verifyTree(tree)
    await writeFile(path, [{ ...root, length: base.dataEnd }], signal)
    const { blockSize, compression } = base
    const options = { blockSize, press: pressOf(compression, blockSize), progress: () => signal.throwIfAborted() }
    await writeSquashfs(path, tree.entries(), options, { ...base, contents })
    return await appendVerity(path)
  } catch (error) {
    if (error instanceof TreeError || error instanceof VerifyError) throw new FactoryError(400, error.message)
    if (error instanceof SquashfsError) throw new FactoryError(500, error.message)
    throw error
  }
}

/** The files of extensions with the part of the tree that each is of; where two have one at a path the later one wins. */
export const filesOf = <File extends { readonly path: string }>(
  extensions: readonly { readonly metadata: ExtensionMetadata; readonly files: readonly File[] }[],
): { file: File; part: string }[] => [
  ...new Map(
    extensions.flatMap(({ metadata, files }) => files.map((file) => [file.path, { file, part: `extension ${metadata.name}` }] as const)),
  ).values(),
]

/** The entries of extensions in the list of an image. */
export const layersOf = (
  extensions: readonly { readonly metadata: ExtensionMetadata }[],
): { image: string; metadata: ExtensionMetadata }[] => extensions.map(({ metadata }, index) => ({ image: `${index}.sqsh`, metadata }))

/** Adds the files of extensions; none replaces a file of the system. Throws TreeError. */
function addFiles(tree: Tree, extensions: readonly Extension[]): void {
  for (const { file, part } of filesOf(extensions)) {
    const { path, type } = file
    if (path.startsWith(modulesFolder) && type === 'file')
      throw new FactoryError(
        400,
        `${part} has kernel modules, whose tables are made with the image: build it with "mkimage.sh --system-extension-image"`,
      )
    if (type !== 'other') tree.add({ ...file, type, part })
  }
}

/** The list, as YAML in the form of JSON. */
const listOf = (extensions: readonly Extension[]) => `${JSON.stringify({ layers: layersOf(extensions) })}\n`
