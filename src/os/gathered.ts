/** The same bytes in pieces of at least `size`, of which only the last may be smaller. */
export async function* gathered(chunks: Iterable<Uint8Array> | AsyncIterable<Uint8Array>, size: number): AsyncGenerator<Buffer, void> {
  let held: Uint8Array[] = []
  let length = 0
  for await (const chunk of chunks) {
    held.push(chunk)
    length += chunk.length
    if (length < size) continue
    yield Buffer.concat(held)
    held = []
    length = 0
  }
  if (length > 0) yield Buffer.concat(held)
}
