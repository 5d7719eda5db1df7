/**
 * A tree of hashes over a file system (kernel Documentation/admin-guide/device-mapper/verity.rst, version 1): the SHA-256 of
 * the salt and each block of 4 KiB, 128 of them in a block of their own, and so on up to one block, whose hash is the root.
 */
import { open } from 'node:fs/promises'

const blockSize = 4096
const digestSize = 32
const perBlock = blockSize / digestSize

/** The parameters for verifying a file system, which stage 0 receives. */
export interface Verity {
  /** Hex. */
  rootHash: string
  /** Hex, 32 bytes. */
  salt: string
  /** Blocks of the file system; its tree begins behind them. */
  dataBlocks: number
  /** Blocks with the tree. */
  blocks: number
}

/** Content is not made of whole blocks. */
export class VerityError extends Error {
  override name = 'VerityError'
}

/** Digests of all blocks of some content, as whole blocks. */
export function hashLevel(content: Uint8Array, salt: Uint8Array): Uint8Array {
  if (content.length === 0 || content.length % blockSize)
    throw new VerityError(`${content.length} bytes are no whole blocks of ${blockSize}`)
  const count = content.length / blockSize
  const level = new Uint8Array(Math.ceil(count / perBlock) * blockSize)
  for (let at = 0; at < count; at++) {
    const digest = new Bun.CryptoHasher('sha256')
      .update(salt)
      .update(content.subarray(at * blockSize, (at + 1) * blockSize))
      .digest()
    level.set(digest, at * digestSize)
  }
  return level
}

/** The tree above the digests of a file system's blocks, highest level first, and the root hash. */
export function hashTree(lowest: Uint8Array, salt: Uint8Array): { tree: Uint8Array; rootHash: string } {
  const levels = [lowest]
  let top = lowest
  while (top.length > blockSize) {
    top = hashLevel(top, salt)
    levels.unshift(top)
  }
  const root = new Bun.CryptoHasher('sha256').update(salt).update(top).digest('hex')
  return { tree: Buffer.concat(levels), rootHash: root }
}

/** Appends the tree to a file system of whole blocks. The salt follows from its content, so equal content has equal trees. */
export async function appendVerity(path: string): Promise<Verity> {
  const file = await open(path, 'r+')
  try {
    const content = await file.readFile()
    const salt = new Bun.CryptoHasher('sha256').update('ichor root file system').update(content).digest()
    const { tree, rootHash } = hashTree(hashLevel(content, salt), salt)
    await file.write(tree, 0, tree.length, content.length)
    return {
      rootHash,
      salt: salt.toString('hex'),
      dataBlocks: content.length / blockSize,
      blocks: (content.length + tree.length) / blockSize,
    }
  } finally {
    await file.close()
  }
}

/** The line that stage 0 reads. */
export const verityLine = ({ rootHash, salt, dataBlocks, blocks }: Verity): string => `${rootHash} ${salt} ${dataBlocks} ${blocks}\n`

/** Name of the root file system on a medium, after the hash that vouches for it. */
export const rootName = ({ rootHash }: Verity): string => `${rootHash.slice(0, 16)}.sqsh`
