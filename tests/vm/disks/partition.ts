/** Partitions of the disk file of a machine that is off. */
import { open } from 'node:fs/promises'
import { diskOn } from '../../../src/programs/factory/release/disk-file.ts'
import { readTable } from '../../../src/wire/gpt/table.ts'
import { viewOf } from '../../../src/wire/probe/view.ts'

/** Where the partition with a label lies, in bytes. Throws where there is none. */
export async function partitionIn(file: string, label: string): Promise<{ offset: number; size: number }> {
  const handle = await open(file)
  try {
    const { size } = await handle.stat()
    const whole = diskOn(handle, 0, size)
    const ends = [0, size - (1 << 20)]
    const stretches = await Promise.all(ends.map(async (offset) => ({ offset, bytes: await whole.read(offset, 1 << 20) })))
    const partition = readTable(viewOf(size, stretches), 512).partitions.find(({ name }) => name === label)
    if (!partition) throw new Error(`"${file}" has no partition ${label}`)
    return { offset: partition.first * 512, size: (partition.last + 1 - partition.first) * 512 }
  } finally {
    await handle.close()
  }
}
