/** Bytes as they might arrive. */
export async function* inPieces(bytes: Uint8Array, size = 700): AsyncGenerator<Uint8Array, void> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

/** All bytes of an iteration. */
export const collected = async (pieces: AsyncIterable<Uint8Array>): Promise<Buffer> => Buffer.concat(await Array.fromAsync(pieces))
