/** The few calls that bring a node from maintenance into its cluster. */

import type { Channel } from '../../../rpc/client/channel.ts'
import { machine } from '../../../rpc/enums.ts'
import { RpcError } from '../../../rpc/status.ts'

const API_PORT = 50_000
const RETRY = 50

/** What a client shows to the nodes, PEM. */
export interface Credentials {
  ca: string
  cert: string
  key: string
}

/** Hands a node in maintenance its configuration, once it answers; `trouble` says when waiting has become pointless. */
export async function applyConfiguration(
  ip: string,
  config: string,
  signal: AbortSignal,
  { installs, trouble }: { installs: boolean; trouble(): string | undefined },
): Promise<void> {
  const { connect } = await import('../../../rpc/client/channel.ts')
  await insist(`node ${ip} takes no configuration`, signal, async () => {
    const why = trouble()
    if (why) throw new HopelessError(why)
    const channel = connect({ address: `${ip}:${API_PORT}`, tls: { insecure: true } })
    try {
      // A machine puts the system on its disk first, and comes back from there.
      const mode = installs ? machine.ApplyConfigurationRequest.Mode.AUTO : machine.ApplyConfigurationRequest.Mode.NO_REBOOT
      await channel.unary('machine.MachineService/ApplyConfiguration', { data: Buffer.from(config), mode }, { deadline: 60_000, signal })
    } finally {
      channel.close()
    }
  })
}

/** Waits until a node answers to its cluster's credentials. */
export async function awaitApi(ip: string, credentials: Credentials, signal: AbortSignal): Promise<void> {
  await insist(`the API of node ${ip} does not answer`, signal, () =>
    withNode(ip, credentials, (channel) => channel.unary('machine.MachineService/Version', {}, { deadline: 10_000, signal })),
  )
}

/** Tells a control plane to be the first of its cluster; one that is already is left alone. */
export async function bootstrap(ip: string, credentials: Credentials, signal: AbortSignal): Promise<void> {
  await insist(`node ${ip} does not bootstrap`, signal, () =>
    withNode(ip, credentials, async (channel) => {
      try {
        await channel.unary('machine.MachineService/Bootstrap', {}, { deadline: 10_000, signal })
      } catch (error) {
        if (!(error instanceof RpcError && error.status === 'AlreadyExists')) throw error
      }
    }),
  )
}

/** The administrator's kubeconfig, once a control plane can make one. */
export async function fetchKubeconfig(ip: string, credentials: Credentials, signal: AbortSignal): Promise<string> {
  return insist(`node ${ip} gives no kubeconfig`, signal, () =>
    withNode(ip, credentials, async (channel) => {
      // The reply is a gzipped tar with one file.
      const parts: Uint8Array[] = []
      for await (const { bytes } of channel.serverStream('machine.MachineService/Kubeconfig', {}, { deadline: 10_000, signal }))
        parts.push(bytes)
      return firstFile(Bun.gunzipSync(Buffer.concat(parts)))
    }),
  )
}

/** Resets a node that leaves its cluster: it gives up its place in etcd and its entry in discovery. */
export async function resetNode(ip: string, credentials: Credentials, signal: AbortSignal): Promise<void> {
  await withNode(ip, credentials, (channel) =>
    channel.unary('machine.MachineService/Reset', { graceful: true, reboot: false }, { deadline: 60_000, signal }),
  )
}

/** The first file of a tar archive, as text. */
export function firstFile(tar: Uint8Array): string {
  for (let at = 0; at + 512 <= tar.length; ) {
    const header = tar.subarray(at, at + 512)
    if (header.every((byte) => byte === 0)) break
    const size = Number.parseInt(Buffer.from(header.subarray(124, 136)).toString('latin1').replace(/\0.*$/, '').trim() || '0', 8)
    if (!Number.isSafeInteger(size) || at + 512 + size > tar.length) throw new Error('the archive is cut short')
    // ustar: regular files have type "0" or NUL.
    if (header[156] === 0 || header[156] === 0x30) return Buffer.from(tar.subarray(at + 512, at + 512 + size)).toString()
    at += 512 + Math.ceil(size / 512) * 512
  }
  throw new Error('the archive holds no file')
}

async function withNode<T>(ip: string, credentials: Credentials, act: (channel: Channel) => Promise<T>): Promise<T> {
  const { connect } = await import('../../../rpc/client/channel.ts')
  const channel = connect({ address: `${ip}:${API_PORT}`, tls: credentials })
  try {
    return await act(channel)
  } finally {
    channel.close()
  }
}

class HopelessError extends Error {}

const HOPELESS = new Set(['InvalidArgument', 'PermissionDenied', 'Unimplemented', 'AlreadyExists'])

/** Tries again until it works, the signal fires, or trying again is no use. */
async function insist<T>(failure: string, signal: AbortSignal, act: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await act()
    } catch (error) {
      const text = (error as Error).message
      if (error instanceof HopelessError || (error instanceof RpcError && HOPELESS.has(error.status)))
        throw new Error(`${failure}: ${text}`)
      if (signal.aborted) throw new Error(`${failure}: ${text}`)
    }
    await Bun.sleep(RETRY)
    if (signal.aborted) throw new Error(`${failure}: ${(signal.reason as Error)?.message ?? 'interrupted'}`)
  }
}
