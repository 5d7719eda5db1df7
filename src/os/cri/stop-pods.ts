/** Ending what pods run, without the kubelet: asked first, made to end after a grace period, sandboxes last. */

import type { Logger } from '../../cosi/log.ts'
import type { Channel } from '../../rpc/client/channel.ts'
import { common } from '../../rpc/enums.ts'
import { failedAs, unlessGone } from '../../supervise/containerd/client.ts'
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
  const stubborn = await endAll(
    channel,
    running.filter((container) => !isSandbox(container)),
    'SIGTERM',
    grace,
  )
  if (stubborn.length > 0) log.warn('killing containers that did not end', { containers: stubborn.map(({ id }) => id).join(' ') })
  const left = await endAll(channel, stubborn, 'SIGKILL', force)
  const sandboxes = await endAll(channel, running.filter(isSandbox), 'SIGKILL', force)
  for (const { id } of [...left, ...sandboxes]) log.error('container could not be ended', { container: id })
}

const signals = { SIGTERM: 15, SIGKILL: 9 } as const

/** Sends a signal to all; those that are still there after so many milliseconds. */
async function endAll(
  channel: Channel,
  containers: readonly ListedContainer[],
  name: keyof typeof signals,
  patience: number,
): Promise<ListedContainer[]> {
  const ended = await Promise.all(containers.map((container) => end(channel, container.internalId, signals[name], patience)))
  return containers.filter((_, index) => !ended[index])
}

async function end(channel: Channel, containerId: string, signal: number, patience: number): Promise<boolean> {
  try {
    // The wait begins before the signal, so that no end is missed.
    const waiting = unlessGone(channel.unary('containerd.services.tasks.v1.Tasks/Wait', { containerId }, { deadline: patience }))
    waiting.catch(() => {})
    await unlessGone(channel.unary('containerd.services.tasks.v1.Tasks/Kill', { containerId, signal }, { deadline: patience }))
    await waiting
    return true
  } catch (error) {
    if (failedAs(error, 'DeadlineExceeded', 'Unavailable', 'FailedPrecondition')) return false
    throw error
  }
}
