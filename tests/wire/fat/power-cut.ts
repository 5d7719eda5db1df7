import type { BlockAccess } from '../../../src/wire/fat/block-access.ts'
import type { DiskCall } from '../../support/memory-disk.ts'
import type { SparseDisk } from '../../support/sparse-disk.ts'

const sector = 512

/**
 * Every disk that a power cut may leave behind: after each write, and with the last write torn between any two sectors
 * (its beginning, middle and end for long ones), and with only one of the writes since the last flush done, as a disk is
 * free to do. The disk given to `look` is good until `look` is done.
 */
export async function everyCut(
  before: SparseDisk,
  calls: readonly DiskCall[],
  look: (disk: BlockAccess, cut: string) => Promise<void>,
): Promise<number> {
  const held = before.copy()
  const disk: BlockAccess = {
    size: held.size,
    read: async (offset, length) => held.read(offset, length),
    write: async () => {
      throw new Error('a disk after a cut is only looked at')
    },
    flush: async () => {},
  }
  let cuts = 0
  const seen = async (what: string) => {
    cuts++
    await look(disk, what)
  }
  /** Looks at the disk with these bytes on it, then takes them away again. */
  const passing = async (offset: number, bytes: Uint8Array, what: string) => {
    const old = held.read(offset, bytes.length)
    held.write(offset, bytes)
    await seen(what)
    held.write(offset, old)
  }
  await seen('before the first write')
  for (let begin = 0; begin < calls.length; ) {
    let end = begin
    while (end < calls.length && calls[end] !== 'flush') end++
    const group = calls.slice(begin, end).filter((call) => call !== 'flush')
    for (const [index, call] of group.slice(1).entries()) await passing(call.offset, call.bytes, `only write ${begin + index + 1}`)
    for (const [index, { offset, bytes }] of group.entries()) {
      for (const length of tornAt(bytes.length))
        await passing(offset, bytes.subarray(0, length), `write ${begin + index} torn at ${length}`)
      held.write(offset, bytes)
      await seen(`after write ${begin + index}`)
    }
    begin = end + 1
  }
  return cuts
}

function tornAt(length: number): number[] {
  const sectors = Math.floor(length / sector)
  if (sectors <= 8) return Array.from({ length: Math.max(0, sectors - 1) }, (_, index) => (index + 1) * sector)
  return [1, Math.floor(sectors / 2), sectors - 1].map((count) => count * sector)
}
