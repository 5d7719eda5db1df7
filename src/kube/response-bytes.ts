import { KubeError } from './errors.ts'
import { type CallOptions, type KubeTransport, refused, unreachable } from './transport.ts'

/** The bytes of a response as they arrive, until the server, the signal or the timeout (ms) ends it. */
export async function* responseBytes(
  transport: KubeTransport,
  path: string,
  options: CallOptions & { timeout: number },
): AsyncGenerator<Uint8Array, void> {
  const deadline = AbortSignal.timeout(options.timeout)
  const { response, where } = await transport.send('GET', path, options, deadline)
  if (!response.ok || !response.body) throw refused(response.status, where, await response.text())
  try {
    for await (const bytes of response.body as AsyncIterable<Uint8Array>) yield bytes
  } catch (error) {
    if (error instanceof KubeError) throw error
    throw unreachable(where, error, deadline, options.signal)
  }
}
