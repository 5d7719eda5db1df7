import type { BlockAccess } from '../../src/wire/fat/block-access.ts'
import { SparseDisk } from './sparse-disk.ts'

/** One request to a disk: a write, or a flush. */
export type DiskCall = { offset: number; bytes: Uint8Array } | 'flush'

/** A disk in memory that remembers every write and flush in their order. */
export interface MemoryDisk extends BlockAccess {
  readonly writes: DiskCall[]
  /** What it holds now. */
  bytes(): Uint8Array
  /** The same, as a disk that later writes do not reach. */
  copy(): SparseDisk
  /** One word for what it holds now. */
  digest(): string
}

/** A disk of so many bytes, or with what another one held; parts that were never written take no memory. */
export function memoryDisk(from: number | Uint8Array | SparseDisk): MemoryDisk {
  const held = from instanceof SparseDisk ? from.copy() : new SparseDisk(typeof from === 'number' ? from : from.length)
  if (from instanceof Uint8Array) held.write(0, from)
  const writes: DiskCall[] = []
  return {
    size: held.size,
    writes,
    bytes: () => held.read(0, held.size),
    copy: () => held.copy(),
    digest: () => held.digest(),
    read: async (offset, length) => held.read(offset, length),
    write: async (offset, bytes) => {
      held.write(offset, bytes)
      writes.push({ offset, bytes: new Uint8Array(bytes) })
    },
    flush: async () => void writes.push('flush'),
  }
}
