/** What a device holds, told by its signatures. Nothing is read past the end of what is at hand. */
import { DecodeError } from '../decode-error.ts'
import { type GptTable, readTable } from '../gpt/table.ts'
import { fileSystems } from './file-systems.ts'
import { mbrKind } from './mbr.ts'
import { members } from './members.ts'
import { type Signature, signature } from './signature.ts'
import type { DeviceView } from './view.ts'

/** Bytes in front and at the end of a device that hold every signature known here. */
export const probedStretch = 256 << 10

/** What was found; a table too when it is a GPT that can be read. */
export interface Probed extends Signature {
  table?: GptTable
}

/** What is on a device with sectors of that size; undefined when there is nothing that is known. */
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
    // Somebody guards a table that cannot be read: that is not an empty disk.
    return mbr === 'protective' ? signature({ name: 'gpt', blockSize: sectorSize }) : undefined
  }
}
