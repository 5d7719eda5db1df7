/** A containerd daemon as its gRPC API shows it; each namespace has a connection of its own, opened when it is first used. */

import { type Channel, connect } from '../../rpc/client/channel.ts'
import type { RpcError } from '../../rpc/status.ts'

/** One containerd daemon. */
export interface Containerd {
  readonly address: string
  /** Calls within a namespace; the connection is made again after the daemon was started anew. */
  in(namespace: string): Channel
  close(): void
}

/** The daemon listening on that unix socket. */
export function containerd(address: string): Containerd {
  const channels = new Map<string, Channel>()
  return {
    address,
    in(namespace) {
      let channel = channels.get(namespace)
      if (!channel) {
        channel = connect({ unix: address }, { metadata: { 'containerd-namespace': namespace }, connectTimeout: 5000 })
        channels.set(namespace, channel)
      }
      return channel
    },
    close() {
      for (const channel of channels.values()) channel.close()
      channels.clear()
    },
  }
}

/** Whether a call failed with one of these statuses. */
export function failedAs(error: unknown, ...statuses: RpcError['status'][]): boolean {
  return error instanceof Error && error.name === 'RpcError' && statuses.includes((error as RpcError).status)
}

/** Waits for a call whose failure with NotFound is as good as success. */
export async function unlessGone<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call
  } catch (error) {
    if (failedAs(error, 'NotFound')) return undefined
    throw error
  }
}
