/** The root file system of a release with the files of system extensions, which lie behind its own data. */

import { ModuleTableError } from '../../../wire/modules/dependencies.ts'
import type { ReadAt } from '../../../wire/tar/read.ts'
import { type Stretch, withStretch } from '../build/read-file.ts'
import { writeFile } from '../build/write-file.ts'
import type { ExtensionFiles, ExtensionMetadata } from '../extensions.ts'
import { FactoryError } from '../factory-error.ts'
import { pressOf, unpackerOf } from './compression.ts'
import { ContentReader } from './contents.ts'
import { SquashfsError } from './error.ts'
import { addModules } from './module-tables.ts'
import { readSquashfsBase, type SquashfsBase, systemPart } from './read.ts'
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

/** Writes the root of a release, of which `dataBlocks` are its file system, with extensions to a file, and its tree of hashes behind it. Throws FactoryError. */
export async function extendRoot(
  path: string,
  root: Stretch,
  { dataBlocks }: Verity,
  { extensions, signal }: { extensions: readonly Extension[]; signal: AbortSignal },
): Promise<Verity> {
  try {
    const { base, tree } = await withStretch(root, (read) => extendedTree(read, dataBlocks * 4096, extensions, signal))
    await writeFile(path, [{ ...root, length: base.dataEnd }], signal)
    const { blockSize, compression } = base
    const options = { blockSize, press: pressOf(compression, blockSize), progress: () => signal.throwIfAborted() }
    const contents = new Map([...base.contents].filter(([each]) => tree.get(each)?.part === systemPart))
    await writeSquashfs(path, tree.entries(), options, { ...base, contents })
    return await appendVerity(path)
  } catch (error) {
    if (error instanceof TreeError || error instanceof VerifyError || error instanceof ModuleTableError)
      throw new FactoryError(400, error.message)
    if (error instanceof SquashfsError) throw new FactoryError(500, error.message)
    throw error
  }
}

/** What the root holds with the extensions. */
async function extendedTree(
  read: ReadAt,
  size: number,
  extensions: readonly Extension[],
  signal: AbortSignal,
): Promise<{ base: SquashfsBase; tree: Tree }> {
  const base = await readSquashfsBase(read, size, unpackerOf)
  const tree = new Tree()
  for (const entry of base.entries) tree.add(entry)
  const files = filesOf(extensions)
  for (const { file, part } of files) if (file.type !== 'other') tree.add({ ...file, type: file.type, part })
  const layers = layersOf(extensions)
  const reader = new ContentReader(read, base, unpackerOf(base.compression))
  const tables = await addModules(tree, files, { base, reader, signal })
  if (tables) layers.push({ image: 'modules.dep.sqsh', metadata: tables })
  // YAML in the form of JSON.
  tree.replace('the list of extensions', listPath, Buffer.from(`${JSON.stringify({ layers })}\n`))
  verifyTree(tree)
  return { base, tree }
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
