/** Creates containers in one namespace of containerd, and removes them with everything that belongs to them. */

import type { Clock } from '../../cosi/clock.ts'
import { packAny } from '../../rpc/client/any.ts'
import type { Channel } from '../../rpc/client/channel.ts'
import { containerd as enums } from '../../rpc/enums.ts'
import type { containerd } from '../../rpc/messages.ts'
import { failedAs, unlessGone } from './client.ts'
import { type ImageContents, snapshotter } from './images.ts'

/** Signal numbers (signal(7)). */
export const signals = { SIGHUP: 1, SIGKILL: 9, SIGTERM: 15 } as const

/** Milliseconds allowed for creating or starting a task: a machine that is starting, or emulated, may be slow. */
export const createDeadline = 15 * 60_000

type Mount = containerd.types.Mount
const { RUNNING, CREATED, PAUSED, PAUSING } = enums.v1.types.Status
const alive = new Set<number>([RUNNING, CREATED, PAUSED, PAUSING])
const retryDelay = 300

/** Prepares a writable snapshot on top of the image for the container `id`. */
export async function prepareSnapshot(channel: Channel, id: string, { chainId }: ImageContents): Promise<Mount[]> {
  const { mounts } = await channel.unary('containerd.services.snapshots.v1.Snapshots/Prepare', {
    snapshotter,
    key: id,
    parent: chainId,
    labels: { 'containerd.io/gc.root': new Date().toISOString() },
  })
  return mounts
}

/** Creates the container record; nothing runs yet. */
export async function createContainer(
  channel: Channel,
  id: string,
  spec: object,
  image: ImageContents | undefined,
  labels: Readonly<Record<string, string>> = {},
): Promise<void> {
  await channel.unary('containerd.services.containers.v1.Containers/Create', {
    container: {
      id,
      labels: { ...labels },
      image: image?.reference ?? '',
      runtime: { name: 'io.containerd.runc.v2', options: packAny('containerd.runc.v1.Options', {}) },
      spec: { type_url: 'types.containerd.io/opencontainers/runtime-spec/1/Spec', value: Buffer.from(JSON.stringify(spec)) },
      ...(image && { snapshotter, snapshotKey: id }),
    },
  })
}

/** Kills and removes the task, the container and the snapshot named `id`, where they exist. */
export async function removeContainer(channel: Channel, id: string, { clock }: { clock: Clock }): Promise<void> {
  const task = await unlessGone(channel.unary('containerd.services.tasks.v1.Tasks/Get', { containerId: id }))
  if (task?.process && alive.has(task.process.status)) {
    await unlessGone(channel.unary('containerd.services.tasks.v1.Tasks/Kill', { containerId: id, signal: signals.SIGKILL, all: true }))
    await unlessGone(channel.unary('containerd.services.tasks.v1.Tasks/Wait', { containerId: id }, { deadline: 10_000 }))
  }
  if (task) await deleteTask(channel, id, clock)
  await unlessGone(channel.unary('containerd.services.containers.v1.Containers/Delete', { id }))
  await unlessGone(channel.unary('containerd.services.snapshots.v1.Snapshots/Remove', { snapshotter, key: id }))
}

/** Deletes a task; retries, because a task that has just exited may not be deletable yet. */
async function deleteTask(channel: Channel, id: string, clock: Clock): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await unlessGone(channel.unary('containerd.services.tasks.v1.Tasks/Delete', { containerId: id }))
      return
    } catch (error) {
      if (!failedAs(error, 'FailedPrecondition') || tries === 10) throw error
      await clock.sleep(retryDelay)
    }
  }
}
