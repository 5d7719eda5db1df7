/** Detects the contents of a device by signatures. Nothing is read outside of the ranges in memory. */
import { DecodeError } from '../decode-error.ts'
import { type GptTable, readTable } from '../gpt/table.ts'
import { fileSystems } from './file-systems.ts'
import { mbrKind } from './mbr.ts'
import { members } from './members.ts'
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
  for (const recognise of [...members, ...fileSystems]) {
    const found = recognise(view)
    if (found) return found
  }
  const mbr = mbrKind(view)
  if (mbr === 'mbr') return signature({ name: 'mbr', blockSize: sectorSize })
  try {
    const table = readTable(view, sectorSize)
    return { ...signature({ name: 'gpt', uuid: table.diskGuid, blockSize: sectorSize, size: view.size }), table }
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error
    // A protective MBR with a damaged GPT: the disk is not empty.
    return mbr === 'protective' ? signature({ name: 'gpt', blockSize: sectorSize }) : undefined
  }
}
