/** Ending what pods run, without the kubelet: asked first, made to end after a grace period, sandboxes last. */

import type { Logger } from '../../cosi/log.ts'
import type { Channel } from '../../rpc/client/channel.ts'
import { common } from '../../rpc/enums.ts'
import { unlessGone } from '../../supervise/containerd/client.ts'
import { type ListedContainer, listContainers } from './containers.ts'
import { criDaemon } from './daemons.ts'

/** Milliseconds that pods have to end, and that killing them may take. */
export interface StopPodsOptions {
  readonly log: Logger
  readonly grace?: number
  readonly force?: number
}

/** Ends every container of every pod. A daemon that does not run has none that could be ended. */
export async function stopPods({ log, grace = 10_000, force = 5_000 }: StopPodsOptions): Promise<void> {
  const running = (await listContainers('k8s.io', common.ContainerDriver.CRI)).filter(({ pid }) => pid !== 0)
  const isSandbox = ({ id, podId }: ListedContainer) => id === podId
  const channel = criDaemon.in('k8s.io')
  const containers = running.filter((container) => !isSandbox(container))
  const stubborn = await endAll(channel, containers, { signal: 'SIGTERM', patience: grace })
  if (stubborn.length > 0) log.warn('killing containers that did not end', { containers: stubborn.map(({ id }) => id).join(' ') })
  const left = await endAll(channel, stubborn, { signal: 'SIGKILL', patience: force })
  const sandboxes = await endAll(channel, running.filter(isSandbox), { signal: 'SIGKILL', patience: force })
  for (const { id, reason } of [...left, ...sandboxes]) log.error('container could not be ended', { container: id, reason })
}

const signals = { SIGTERM: 15, SIGKILL: 9 } as const

/** A container that is still there, and what its daemon said of it. */
export interface Left extends Pick<ListedContainer, 'id' | 'internalId'> {
  readonly reason: string
}

/** Sends a signal to all; those that are still there after so many milliseconds. */
export async function endAll(
  channel: Pick<Channel, 'unary'>,
  containers: readonly Pick<ListedContainer, 'id' | 'internalId'>[],
  { signal, patience }: { signal: keyof typeof signals; patience: number },
): Promise<Left[]> {
  const left = await Promise.all(
    containers.map(async ({ id, internalId }): Promise<Left[]> => {
      const reason = await end(channel, internalId, signals[signal], patience)
      return reason === undefined ? [] : [{ id, internalId, reason }]
    }),
  )
  return left.flat()
}

/** Why a container has not ended; whatever goes wrong with one of them keeps neither the others nor the machine from their end. */
async function end(channel: Pick<Channel, 'unary'>, containerId: string, signal: number, patience: number): Promise<string | undefined> {
  try {
    // The wait begins before the signal, so that no end is missed.
    const waiting = unlessGone(channel.unary('containerd.services.tasks.v1.Tasks/Wait', { containerId }, { deadline: patience }))
    waiting.catch(() => {})
    await unlessGone(channel.unary('containerd.services.tasks.v1.Tasks/Kill', { containerId, signal }, { deadline: patience }))
    await waiting
    return undefined
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}
