/** The gRPC API of a containerd daemon. Each namespace has its own connection, opened on first use. */

import { type Channel, connect } from '../../rpc/client/channel.ts'
import { RpcError } from '../../rpc/status.ts'

/** One containerd daemon. */
export interface Containerd {
  readonly address: string
  /** The channel for a namespace; it reconnects after the daemon was restarted. */
  in(namespace: string): Channel
  close(): void
}

/** The daemon that listens on a unix socket. */
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

/** Whether a call failed with one of the statuses. */
export function failedAs(error: unknown, ...statuses: RpcError['status'][]): boolean {
  return error instanceof RpcError && statuses.includes(error.status)
}

/** Awaits a call and treats NotFound as success. */
export async function unlessGone<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call
  } catch (error) {
    if (failedAs(error, 'NotFound')) return undefined
    throw error
  }
}
