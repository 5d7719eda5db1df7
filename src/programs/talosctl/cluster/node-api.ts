/** The few calls that bring a node from maintenance into its cluster. */

import type { Channel } from '../../../rpc/client/channel.ts'
import { machine } from '../../../rpc/enums.ts'
import { RpcError } from '../../../rpc/status.ts'
import { pause } from '../../../timing/pause.ts'
import { messageOf } from '../../../wire/error-message.ts'
import { formatHostPort } from '../../../wire/host-port.ts'
import { dialAddress } from '../endpoint.ts'
import { sequenceFailure } from '../event.ts'
import { kubeconfigIn } from '../kubeconfig-fetch.ts'

/** Where the API of a machine listens. */
export const machineApiPort = 50_000
const retryInterval = 50
/** Milliseconds in which a running node answers its state. */
const stateDeadline = 5_000

/** What a client shows to the nodes, PEM. */
export interface Credentials {
  ca: string
  cert: string
  key: string
}

/** The state of a node: in maintenance, without a configuration, or a member of this cluster in a stage of its lifecycle. */
export interface NodeState {
  readonly stage: string
  /** Whether all that makes the machine ready holds. */
  readonly ready: boolean
}

/** How a node that may need its configuration is brought on. */
export interface Configuring {
  readonly credentials: Credentials
  /** Its configuration, made only for a node that takes one. */
  config(): string
  /** Whether it is a machine that puts the system on its disk first, and comes back from there. */
  readonly installs: boolean
  /** Why waiting has become pointless. */
  trouble(): string | undefined
  readonly signal: AbortSignal
}

/** Waits until a node answers, and sends its configuration if it has none; true when it had none. */
export async function configureIfNeeded(ip: string, { credentials, config, installs, trouble, signal }: Configuring): Promise<boolean> {
  return insist(`node ${ip} takes no configuration`, signal, async () => {
    const why = trouble()
    if (why) throw new HopelessError(why)
    const { stage } = await nodeState({ address: formatHostPort(ip, machineApiPort), credentials, signal })
    if (stage !== 'maintenance') return false
    const mode = installs ? machine.ApplyConfigurationRequest.Mode.AUTO : machine.ApplyConfigurationRequest.Mode.NO_REBOOT
    const request = { data: Buffer.from(config()), mode }
    await withChannel(formatHostPort(ip, machineApiPort), { insecure: true }, (channel) =>
      channel.unary('machine.MachineService/ApplyConfiguration', request, { deadline: 60_000, signal }),
    )
    return true
  })
}

/** Queries the state of a node: first as its cluster's administrator, then anonymously as in maintenance. Throws when neither is answered. */
export async function nodeState(node: { address: string; credentials: Credentials; signal: AbortSignal }): Promise<NodeState> {
  const { address, credentials, signal } = node
  try {
    return await withChannel(address, credentials, async (channel) => {
      const status = { namespace: 'runtime', type: 'MachineStatuses.runtime.talos.dev', id: 'machine' }
      const { resource } = await channel.unary('cosi.resource.State/Get', status, { deadline: stateDeadline, signal })
      const spec = Bun.YAML.parse(resource?.spec?.yamlSpec ?? '') as { stage?: string; status?: { ready?: boolean } } | null
      return { stage: spec?.stage ?? 'unknown', ready: spec?.status?.ready === true }
    })
  } catch (error) {
    if (signal.aborted || (error instanceof RpcError && error.status !== 'Unavailable')) throw error
    await withChannel(address, { insecure: true }, (channel) =>
      channel.unary('machine.MachineService/Version', {}, { deadline: stateDeadline, signal }),
    ).catch(() => {
      throw error
    })
    return { stage: 'maintenance', ready: false }
  }
}

/** Waits until a node answers, and throws when it has no configuration or does not come up. */
export async function awaitConfigured(
  ip: string,
  { credentials, trouble, signal }: Omit<Configuring, 'config' | 'installs'>,
): Promise<void> {
  await insist(`node ${ip} does not come up`, signal, async () => {
    const why = trouble()
    if (why) throw new HopelessError(why)
    const { stage } = await nodeState({ address: formatHostPort(ip, machineApiPort), credentials, signal })
    if (stage === 'maintenance') throw new HopelessError('it lost its configuration and waits in maintenance')
  })
}

/** Waits until a node answers to its cluster's credentials; an endpoint without a port has that of the machine API. */
export async function awaitApi(
  endpoint: string,
  credentials: Credentials,
  signal: AbortSignal,
  trouble: () => Promise<string | undefined> = async () => undefined,
): Promise<void> {
  await insist(`the API of node ${endpoint} does not answer`, signal, async () => {
    const why = await trouble()
    if (why) throw new HopelessError(why)
    await withNode(endpoint, credentials, (channel) => channel.unary('machine.MachineService/Version', {}, { deadline: 10_000, signal }))
  })
}

/** Bootstraps a control plane as the first of its cluster; one that is already bootstrapped is left alone. */
export async function bootstrap(endpoint: string, credentials: Credentials, signal: AbortSignal): Promise<void> {
  await insist(`node ${endpoint} does not bootstrap`, signal, () =>
    withNode(endpoint, credentials, async (channel) => {
      try {
        await channel.unary('machine.MachineService/Bootstrap', {}, { deadline: 10_000, signal })
      } catch (error) {
        if (!(error instanceof RpcError && error.status === 'AlreadyExists')) throw error
      }
    }),
  )
}

/** The administrator's kubeconfig, once a control plane can make one. */
export async function fetchKubeconfig(endpoint: string, credentials: Credentials, signal: AbortSignal): Promise<string> {
  return insist(`node ${endpoint} gives no kubeconfig`, signal, () =>
    withNode(endpoint, credentials, (channel) =>
      kubeconfigIn(channel.serverStream('machine.MachineService/Kubeconfig', {}, { deadline: 10_000, signal })),
    ),
  )
}

/**
 * Resets a node that leaves its cluster: it gives up its place in etcd and its entry in discovery. Returns when the node no
 * longer answers; throws with the reason when it gives the reset up. With `node` the one at the address passes the calls on to it.
 */
export async function resetNode(address: string, credentials: Credentials, signal: AbortSignal, node?: string): Promise<void> {
  const to = { signal, ...(node !== undefined && { metadata: { node } }) }
  await withChannel(address, credentials, async (channel) => {
    const request = { graceful: true, reboot: false }
    const { messages } = await channel.unary('machine.MachineService/Reset', request, { deadline: 60_000, ...to })
    const events = { withActorId: messages[0]?.actorId ?? '', tailEvents: -1 }
    try {
      for await (const { data } of channel.serverStream('machine.MachineService/Events', events, to)) {
        const failure = sequenceFailure(data)
        if (failure !== undefined) throw new Error(failure)
      }
    } catch (error) {
      // The node is on its way down, and its API with it.
      if (!(error instanceof RpcError) || signal.aborted) throw error
    }
  })
}

async function withNode<T>(endpoint: string, credentials: Credentials, act: (channel: Channel) => Promise<T>): Promise<T> {
  return withChannel(dialAddress(endpoint), credentials, act)
}

async function withChannel<T>(address: string, tls: Credentials | { insecure: true }, act: (channel: Channel) => Promise<T>): Promise<T> {
  const { connect } = await import('../../../rpc/client/channel.ts')
  const channel = connect({ address, tls })
  try {
    return await act(channel)
  } finally {
    channel.close()
  }
}

class HopelessError extends Error {}

const hopelessCodes = new Set(['InvalidArgument', 'PermissionDenied', 'Unimplemented', 'AlreadyExists'])

/** Tries again until it works, the signal fires, or trying again is no use. */
async function insist<T>(failure: string, signal: AbortSignal, act: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await act()
    } catch (error) {
      const text = messageOf(error)
      if (error instanceof HopelessError || (error instanceof RpcError && hopelessCodes.has(error.status)))
        throw new Error(`${failure}: ${text}`)
      if (signal.aborted) throw new Error(`${failure}: ${text}`)
    }
    await pause(retryInterval, signal)
    if (signal.aborted) throw new Error(`${failure}: ${(signal.reason as Error)?.message ?? 'interrupted'}`)
  }
}
