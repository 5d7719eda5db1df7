import { KubeError } from './errors.ts'

/** Upper limit of a line; no API server sends longer ones. */
const longest = 16 * 1024 * 1024

/** The lines of a byte stream without their terminators; empty lines are skipped. */
export async function* lines(stream: AsyncIterable<Uint8Array> | ReadableStream<Uint8Array>): AsyncGenerator<string, void> {
  const decoder = new TextDecoder()
  // Chunks of an incomplete line: joined once, however many chunks it arrives in.
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
