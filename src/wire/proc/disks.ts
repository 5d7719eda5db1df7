import { DecodeError } from '../decode-error.ts'
import { decimal, fields, lines } from './lines.ts'

/** Counters of a block device; sectors are 512 bytes. */
export interface DiskStat {
  name: string
  readCompleted: number
  readMerged: number
  readSectors: number
  readTimeMs: number
  writeCompleted: number
  writeMerged: number
  writeSectors: number
  writeTimeMs: number
  ioInProgress: number
  ioTimeMs: number
  ioTimeWeightedMs: number
  discardCompleted: number
  discardMerged: number
  discardSectors: number
  discardTimeMs: number
}

/** Parses /proc/diskstats (iostats in the kernel's documents). */
export function parseDiskstats(text: string): DiskStat[] {
  return lines('diskstats', text, 65536).map(({ text: line, offset }) => {
    const [, , name, ...words] = fields(line)
    if (name === undefined || words.length < 11) throw new DecodeError('diskstats', offset, 'too few fields')
    const at = (index: number) => (index < words.length ? decimal('diskstats', words[index], offset) : 0) // discards came with Linux 4.18
    return {
      name,
      readCompleted: at(0),
      readMerged: at(1),
      readSectors: at(2),
      readTimeMs: at(3),
      writeCompleted: at(4),
      writeMerged: at(5),
      writeSectors: at(6),
      writeTimeMs: at(7),
      ioInProgress: at(8),
      ioTimeMs: at(9),
      ioTimeWeightedMs: at(10),
      discardCompleted: at(11),
      discardMerged: at(12),
      discardSectors: at(13),
      discardTimeMs: at(14),
    }
  })
}
