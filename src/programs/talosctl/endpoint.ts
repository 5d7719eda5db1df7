import { connect } from 'node:net'
import { formatHostPort, type HostPort, splitHostPort } from '../../wire/host-port.ts'

/** Host and port of an endpoint such as "10.5.0.2", "[fd00::2]:50000", "fd00::2" or "node:443"; the default port is 50000. */
export const parseEndpoint = (endpoint: string): HostPort => splitHostPort(endpoint.replace(/^https?:\/\//, '').replace(/\/$/, ''), 50_000)

/** The endpoint as "host:port", IPv6 in brackets. */
export function dialAddress(endpoint: string): string {
  const { host, port } = parseEndpoint(endpoint)
  return formatHostPort(host, port)
}

/** Why none of the endpoints answered. */
export class Unreachable extends Error {
  override name = 'Unreachable'
}

/**
 * The first endpoint that accepts a connection: they are tried from a random one on, each next one when the one before
 * has failed or has been silent for 250 ms.
 */
export async function reachable(
  endpoints: readonly string[],
  options: { timeout?: number; stagger?: number; start?: number; signal?: AbortSignal } = {},
): Promise<string> {
  const { timeout = 5000, stagger = 250, start = Math.floor(Math.random() * endpoints.length), signal } = options
  const ordered = endpoints.map((_, index) => endpoints[(start + index) % endpoints.length] ?? '')
  const failures: string[] = []
  return new Promise((resolve, reject) => {
    const probes: (() => void)[] = []
    const timers: ReturnType<typeof setTimeout>[] = []
    let next = 0
    const finish = (act: () => void) => {
      for (const timer of timers) clearTimeout(timer)
      for (const stop of probes) stop()
      signal?.removeEventListener('abort', aborted)
      act()
    }
    const aborted = () => finish(() => reject(signal?.reason))
    const unreachable = () => new Unreachable(`no endpoint answers: ${failures.join('; ')}`)
    const tryNext = () => {
      const endpoint = ordered[next++]
      if (endpoint === undefined) return
      const { host, port } = parseEndpoint(endpoint)
      const socket = connect({ host, port })
      probes.push(() => socket.destroy())
      socket.once('connect', () => finish(() => resolve(endpoint)))
      socket.once('error', (error: NodeJS.ErrnoException) => {
        failures.push(`${endpoint}: ${error.code ?? error.message}`)
        if (failures.length === ordered.length) finish(() => reject(unreachable()))
        else tryNext()
      })
      timers.push(setTimeout(tryNext, stagger))
    }
    timers.push(
      setTimeout(() => {
        for (const endpoint of ordered)
          if (!failures.some((failure) => failure.startsWith(`${endpoint}: `))) failures.push(`${endpoint}: silent`)
        finish(() => reject(unreachable()))
      }, timeout),
    )
    signal?.addEventListener('abort', aborted)
    tryNext()
  })
}
