import { connect } from 'node:net'
import { codeOf } from '../../wire/errno.ts'
import { formatHostPort, type HostPort, splitHostPort } from '../../wire/host-port.ts'

/** Host and port of an endpoint such as "10.5.0.2", "[fd00::2]:50000", "fd00::2" or "node:443"; the default port is 50000. */
export const endpointOf = (endpoint: string): HostPort => splitHostPort(endpoint.replace(/^https?:\/\//, '').replace(/\/$/, ''), 50_000)

/** The endpoint as "host:port", IPv6 in brackets. */
export function dialAddress(endpoint: string): string {
  const { host, port } = endpointOf(endpoint)
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
  const { timeout = 5000, stagger = 250, signal } = options
  const distinct = [...new Set(endpoints)]
  const { start = Math.floor(Math.random() * distinct.length) } = options
  const ordered = distinct.map((_, index) => distinct[(start + index) % distinct.length] ?? '')
  const failures = new Map<string, string>()
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
    const unreachable = () =>
      new Unreachable(`no endpoint answers: ${[...failures].map(([endpoint, failure]) => `${endpoint}: ${failure}`).join('; ')}`)
    const tryNext = () => {
      const endpoint = ordered[next++]
      if (endpoint === undefined) return
      const { host, port } = endpointOf(endpoint)
      const socket = connect({ host, port })
      probes.push(() => socket.destroy())
      socket.once('connect', () => finish(() => resolve(endpoint)))
      socket.once('error', (error) => {
        failures.set(endpoint, codeOf(error))
        if (failures.size === ordered.length) finish(() => reject(unreachable()))
        else tryNext()
      })
      timers.push(setTimeout(tryNext, stagger))
    }
    timers.push(
      setTimeout(() => {
        for (const endpoint of ordered) if (!failures.has(endpoint)) failures.set(endpoint, 'silent')
        finish(() => reject(unreachable()))
      }, timeout),
    )
    signal?.addEventListener('abort', aborted)
    tryNext()
  })
}
