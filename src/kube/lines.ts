import { KubeError } from './errors.ts'

/** A line longer than this is no API server's. */
const longest = 16 * 1024 * 1024

/** The lines of a stream of bytes, without their ends; empty ones are left out. */
export async function* lines(stream: AsyncIterable<Uint8Array> | ReadableStream<Uint8Array>): AsyncGenerator<string, void> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of stream as AsyncIterable<Uint8Array>) {
    const parts = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = parts.pop() ?? ''
    if (rest.length > longest) throw new KubeError(0, 'Malformed', `a line of more than ${longest} bytes`)
    for (const part of parts) if (part) yield part
  }
  if (rest) yield rest
}
