import { KubeError } from './errors.ts'
import { lines } from './lines.ts'
import type { KubeObject } from './object.ts'
import { type CallOptions, type KubeTransport, refused, unreachable } from './transport.ts'

/** An event of a watch. */
export interface WatchEvent {
  type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'
  object: KubeObject
}

/** The events of a watch, until the server, the signal or the timeout ends it. */
export async function* watchEvents(
  transport: KubeTransport,
  path: string,
  options: CallOptions & { timeout: number },
): AsyncGenerator<WatchEvent, void> {
  const deadline = AbortSignal.timeout(options.timeout)
  const { response, where } = await transport.send('GET', path, options, deadline)
  if (!response.ok || !response.body) throw refused(response.status, where, await response.text())
  try {
    for await (const line of lines(response.body)) {
      const event = parseEvent(line, where)
      if (event.type === 'ERROR') {
        const {
          code = 500,
          reason = 'Unknown',
          message = 'watch ended',
        } = event.object as { code?: number; reason?: string; message?: string }
        throw new KubeError(code, reason, `${where}: ${message}`)
      }
      yield event as WatchEvent
    }
  } catch (error) {
    if (error instanceof KubeError) throw error
    throw unreachable(where, error, deadline, options.signal)
  }
}

function parseEvent(line: string, where: string): { type: string; object: unknown } {
  try {
    const event = JSON.parse(line)
    if (typeof event?.type === 'string' && typeof event.object === 'object' && event.object !== null) return event
  } catch {}
  throw new KubeError(0, 'Malformed', `${where}: a watch event is not JSON`)
}
