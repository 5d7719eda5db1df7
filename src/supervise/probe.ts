/** Checks that something responds. Each throws the problem, and stops when its signal is aborted. */

import type { Containerd } from './containerd/client.ts'

/** Checks that a TCP port accepts connections. */
export const tcpProbe = (hostname: string, port: number) => (signal: AbortSignal) => dial({ hostname, port }, signal)

/** Checks that a unix socket accepts connections. */
export const unixProbe = (path: string) => (signal: AbortSignal) => dial({ unix: path }, signal)

/** Checks that a GET of the URL returns a success status. */
export const httpProbe =
  (url: string) =>
  async (signal: AbortSignal): Promise<void> => {
    const response = await fetch(url, { signal }).catch((error: Error & { code?: string }) => {
      throw new Error(`GET ${url}: ${error.code === 'ECONNREFUSED' ? 'connection refused' : error.message}`)
    })
    await response.body?.cancel()
    if (!response.ok) throw new Error(`GET ${url}: status ${response.status}`)
  }

/** Checks that containerd reports SERVING. */
export const containerdProbe =
  (containerd: Containerd, namespace: string) =>
  async (signal: AbortSignal): Promise<void> => {
    const { status } = await containerd.in(namespace).unary('grpc.health.v1.Health/Check', {}, { signal, deadline: 5000 })
    if (status !== 1) throw new Error(`containerd at "${containerd.address}" does not serve yet`)
  }

/** Milliseconds that the connection of a probe stays open. */
const politeTime = 20

function dial(target: { hostname: string; port: number } | { unix: string }, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const name = 'unix' in target ? `"${target.unix}"` : `${target.hostname}:${target.port}`
    const fail = (error: Error) => reject(new Error(`dial ${name}: ${error.message}`))
    const socket = {
      open(connection: { end(): void }) {
        resolve()
        // Read what a server sends first: closing a socket with unread bytes would reset the connection.
        setTimeout(() => connection.end(), politeTime)
      },
      connectError: (_: unknown, error: Error) => fail(error),
      data() {},
    }
    const connecting = 'unix' in target ? Bun.connect({ ...target, socket }) : Bun.connect({ ...target, socket })
    connecting.catch(fail)
    signal.addEventListener('abort', () => {
      fail(new Error('no answer in time'))
      connecting.then(
        (connection) => connection.end(),
        () => {},
      )
    })
  })
}
