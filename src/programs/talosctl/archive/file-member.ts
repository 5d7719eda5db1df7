import { createReadStream, statSync } from 'node:fs'
import type { TarMember } from '../../../wire/tar/write.ts'

/** A file of this computer as a member of an archive: readable by all, without its time, as long as it is now. */
export function fileMember(path: string, source: string): TarMember {
  const { size } = statSync(source)
  return { path, type: 'file', mode: 0o644, size, content: contentOf(source, size) }
}

/** Opened when it is its turn. */
async function* contentOf(source: string, size: number): AsyncGenerator<Uint8Array, void> {
  if (size > 0) for await (const piece of createReadStream(source, { end: size - 1, highWaterMark: 1 << 20 })) yield piece as Uint8Array
}
