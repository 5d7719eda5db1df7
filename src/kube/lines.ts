import { KubeError } from './errors.ts'

/** A line longer than this is no API server's. */
const longest = 16 * 1024 * 1024

/** The lines of a stream of bytes, without their ends; empty ones are left out. */
export async function* lines(stream: AsyncIterable<Uint8Array> | ReadableStream<Uint8Array>): AsyncGenerator<string, void> {
  const decoder = new TextDecoder()
  // Pieces of a line without its end: joined once, however many chunks it comes in.
  let rest: string[] = []
  let length = 0
  for await (const chunk of stream as AsyncIterable<Uint8Array>) {
    const [first = '', ...others] = decoder.decode(chunk, { stream: true }).split('\n')
    length += first.length
    rest.push(first)
    for (const next of others) {
      const line = rest.join('')
      if (line) yield line
      rest = [next]
      length = next.length
    }
    if (length > longest) throw new KubeError(0, 'Malformed', `a line of more than ${longest} bytes`)
  }
  const last = rest.join('')
  if (last) yield last
}
