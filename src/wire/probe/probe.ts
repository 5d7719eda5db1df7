/** Detects the contents of a device by signatures. Nothing is read outside of the ranges in memory. */
import { DecodeError } from '../decode-error.ts'
import { type GptTable, readTable } from '../gpt/table.ts'
import { fileSystems } from './file-systems.ts'
import { mbrKind } from './mbr.ts'
import { members, oldRaid, oldRaidOffset } from './members.ts'
import { type Signature, signature } from './signature.ts'
import type { DeviceView } from './view.ts'

/** Bytes at the start and at the end of a device that contain every known signature. */
export const probedStretch = 256 << 10

/** What was found; includes the table for a valid GPT. */
export interface Probed extends Signature {
  table?: GptTable
}

/** The contents of a device with this sector size; undefined when no known signature was found. */
export function probe(view: DeviceView, sectorSize: number): Probed | undefined {
  const old = oldRaid(view)
  if (old && !inPartition(view, sectorSize, oldRaidOffset(view.size))) return old
  for (const recognise of [...members, ...fileSystems]) {
    const found = recognise(view)
    if (found) return found
  }
  const mbr = mbrKind(view)
  if (mbr === 'mbr') return signature({ name: 'mbr', blockSize: sectorSize })
  const table = tableOf(view, sectorSize)
  if (table) return { ...signature({ name: 'gpt', uuid: table.diskGuid, blockSize: sectorSize, size: view.size }), table }
  // A protective MBR with a damaged GPT: the disk is not empty.
  return mbr === 'protective' ? signature({ name: 'gpt', blockSize: sectorSize }) : undefined
}

function tableOf(view: DeviceView, sectorSize: number): GptTable | undefined {
  try {
    return readTable(view, sectorSize)
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error
    return undefined
  }
}

/** Whether an offset belongs to a partition, whose content must not hide the partition table of the disk. */
function inPartition(view: DeviceView, sectorSize: number, offset: number): boolean {
  const sector = Math.floor(offset / sectorSize)
  return tableOf(view, sectorSize)?.partitions.some(({ first, last }) => first <= sector && sector <= last) ?? false
}
