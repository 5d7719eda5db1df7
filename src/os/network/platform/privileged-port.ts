/**
 * Requests from a source port below 1024, by which a metadata server knows a program of the root user. The runtime's own client
 * chooses no source port.
 */
import { failedWith } from '../../../wire/errno.ts'

/** Source ports to try, in order: those that were used a short time ago are not free. */
export function privilegedPorts(random: () => number = Math.random): number[] {
  const [first, last] = [100, 611] // the range that the server of Scaleway knows
  const start = Math.floor(random() * (last - first + 1))
  return Array.from({ length: last - first + 1 }, (_, step) => first + ((start + step) % (last - first + 1)))
}

/** Fetches over HTTP from the first free one of these source ports. */
export async function fetchFromPort(
  url: string,
  {
    ports,
    headers,
    limit,
    signal,
  }: { ports: readonly number[]; headers: Readonly<Record<string, string>>; limit: number; signal: AbortSignal },
): Promise<Response> {
  for (const port of ports)
    try {
      return await fetchFrom(url, { port, headers, limit, signal })
    } catch (error) {
      if (!failedWith(error, 'EADDRINUSE') && !failedWith(error, 'EADDRNOTAVAIL')) throw error
    }
  throw new Error('no source port is free')
}

async function fetchFrom(
  url: string,
  { port, headers, limit, signal }: { port: number; headers: Readonly<Record<string, string>>; limit: number; signal: AbortSignal },
): Promise<Response> {
  // Loaded here, since it is a sixth of what init evaluates at its start, and only one platform needs it.
  const { request } = await import('node:http')
  return new Promise((resolve, reject) => {
    const sent = request(url, { localPort: port, headers, signal, agent: false }, (response) => {
      const pieces: Uint8Array[] = []
      let size = 0
      response.on('data', (piece: Uint8Array) => {
        size += piece.length
        if (size <= limit) pieces.push(piece)
        else {
          reject(new Error(`response larger than ${limit} bytes`))
          sent.destroy()
        }
      })
      response.on('end', () => resolve(new Response(Buffer.concat(pieces), { status: response.statusCode ?? 502 })))
      response.on('error', reject)
    })
    sent.on('error', reject)
    sent.end()
  })
}
