/** Stops the containers of pods without the kubelet: SIGTERM first, SIGKILL after a grace period, sandboxes last. */

import type { Logger } from '../../cosi/log.ts'
import type { Channel } from '../../rpc/client/channel.ts'
import { common } from '../../rpc/enums.ts'
import { unlessGone } from '../../supervise/containerd/client.ts'
import { messageOf } from '../../wire/error-message.ts'
import { type ListedContainer, listContainers } from './containers.ts'
import { criDaemon } from './daemons.ts'

/** Timeouts in milliseconds: for pods to end by themselves, and for killing them. */
export interface StopPodsOptions {
  readonly log: Logger
  readonly grace?: number
  readonly force?: number
}

/** Stops every container of every pod. A daemon that does not run has none. */
export async function stopPods({ log, grace = 10_000, force = 5_000 }: StopPodsOptions): Promise<void> {
  const running = (await listContainers('k8s.io', common.ContainerDriver.CRI)).filter(({ pid }) => pid !== 0)
  const isSandbox = ({ id, podId }: ListedContainer) => id === podId
  const channel = criDaemon.in('k8s.io')
  const containers = running.filter((container) => !isSandbox(container))
  const stubborn = await endAll(channel, containers, { signal: 'SIGTERM', timeout: grace })
  if (stubborn.length > 0) log.warn('killing containers that did not end', { containers: stubborn.map(({ id }) => id).join(' ') })
  const left = await endAll(channel, stubborn, { signal: 'SIGKILL', timeout: force })
  const sandboxes = await endAll(channel, running.filter(isSandbox), { signal: 'SIGKILL', timeout: force })
  for (const { id, reason } of [...left, ...sandboxes]) log.error('stop container failed', { container: id, error: reason })
}

const signals = { SIGTERM: 15, SIGKILL: 9 } as const

/** A container that is still running, and the daemon's error. */
export interface Left extends Pick<ListedContainer, 'id' | 'internalId'> {
  readonly reason: string
}

/** Sends a signal to all; returns those that still run after so many milliseconds. */
export async function endAll(
  channel: Pick<Channel, 'unary'>,
  containers: readonly Pick<ListedContainer, 'id' | 'internalId'>[],
  { signal, timeout }: { signal: keyof typeof signals; timeout: number },
): Promise<Left[]> {
  const left = await Promise.all(
    containers.map(async ({ id, internalId }): Promise<Left[]> => {
      const reason = await end(channel, internalId, signals[signal], timeout)
      return reason === undefined ? [] : [{ id, internalId, reason }]
    }),
  )
  return left.flat()
}

/** Ends one container; returns why it did not end. A failure with one container does not keep the others, or the machine, from ending. */
async function end(channel: Pick<Channel, 'unary'>, containerId: string, signal: number, timeout: number): Promise<string | undefined> {
  try {
    // The wait starts before the signal, so that no exit is missed.
    const waiting = unlessGone(channel.unary('containerd.services.tasks.v1.Tasks/Wait', { containerId }, { deadline: timeout }))
    waiting.catch(() => {})
    await unlessGone(channel.unary('containerd.services.tasks.v1.Tasks/Kill', { containerId, signal }, { deadline: timeout }))
    await waiting
    return undefined
  } catch (error) {
    return messageOf(error)
  }
}
