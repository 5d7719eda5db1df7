import type { BlockAccess } from '../../../src/wire/fat/volume.ts'

/** One thing a disk was told: a write, or that everything before it must be kept. */
export type DiskCall = { offset: number; bytes: Uint8Array } | 'flush'

/** A disk in memory that remembers every write and flush in their order. */
export interface MemoryDisk extends BlockAccess {
  readonly writes: DiskCall[]
  /** What it holds now. */
  bytes(): Uint8Array
}

/** A disk of so many bytes, or with what another one held; pages that were never written take no memory. */
export function memoryDisk(from: number | Uint8Array): MemoryDisk {
  const held = typeof from === 'number' ? new Uint8Array(from) : new Uint8Array(from)
  const writes: DiskCall[] = []
  return {
    size: held.length,
    writes,
    bytes: () => new Uint8Array(held),
    read: async (offset, length) => {
      if (offset < 0 || offset + length > held.length) throw new RangeError(`read at ${offset} lies outside`)
      return held.slice(offset, offset + length)
    },
    write: async (offset, bytes) => {
      if (offset < 0 || offset + bytes.length > held.length) throw new RangeError(`write at ${offset} lies outside`)
      held.set(bytes, offset)
      writes.push({ offset, bytes: new Uint8Array(bytes) })
    },
    flush: async () => void writes.push('flush'),
  }
}
