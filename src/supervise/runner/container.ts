/**
 * Runs a container of containerd. Whatever an earlier run has left under the same name is removed first; the container
 * outlives containerd's own end (its shim is a process of its own), so a broken connection is no news about it.
 */

import type { Clock } from '../../cosi/clock.ts'
import type { Channel } from '../../rpc/client/channel.ts'
import type { containerd } from '../../rpc/messages.ts'
import { type Containerd, failedAs, unlessGone } from '../containerd/client.ts'
import { createContainer, createDeadline, prepareSnapshot, removeContainer, signals } from '../containerd/containers.ts'
import { type ImageContents, imageContents } from '../containerd/images.ts'
import type { Exit, Life, Run, Runner } from '../definition.ts'
import type { LogRing } from '../log-ring.ts'

/** A named pipe whose reading end is ours. */
export interface Pipe {
  readonly path: string
  readonly stream: ReadableStream<Uint8Array>
  /** The container has it open: from now on the stream ends with its last writer. */
  opened(): void
  close(): Promise<void>
}

/** Where a container's root file system comes from. */
export type RootSource = { readonly folder: string; readonly readonly?: boolean } | { readonly image: string }

/** A container and where it runs. */
export interface ContainerOptions {
  readonly containerd: Containerd
  readonly namespace: string
  readonly root: RootSource | ((life: Life) => RootSource)
  /** The OCI specification; for an image root it is told what the image brings. */
  readonly spec: (life: Life, image: ImageContents | undefined) => object | Promise<object>
  /** Makes a named pipe for the container's output. */
  readonly makePipe: (id: string) => Pipe
  /** Removes what the runtime below containerd has kept of a container that containerd does not know any more. */
  readonly purge?: (id: string) => Promise<void>
  readonly labels?: Readonly<Record<string, string>>
}

type Mount = containerd.types.Mount
const retryDelay = 300
/** How long the last output is waited for: a process that left its container may hold the pipe open. */
const drainLimit = 1000

/** Runs a container whose name is the service's id. */
export function container(options: ContainerOptions): Runner {
  return async (life) => {
    const { id } = life.definition
    const channel = options.containerd.in(options.namespace)
    await removeContainer(channel, id, life)
    await options.purge?.(id)
    const root = typeof options.root === 'function' ? options.root(life) : options.root
    const image = 'image' in root ? await imageOf(channel, root.image) : undefined
    const rootfs = 'image' in root ? await prepareSnapshot(channel, id, image!) : folderMount(root)
    const spec = await options.spec(life, image)
    await createContainer(channel, id, spec, image, options.labels ?? {})
    const pipe = options.makePipe(id)
    try {
      const { pid } = await channel.unary(
        'containerd.services.tasks.v1.Tasks/Create',
        { containerId: id, rootfs, stdout: pipe.path, stderr: pipe.path },
        { deadline: createDeadline },
      )
      pipe.opened()
      life.created(pid)
      await channel.unary('containerd.services.tasks.v1.Tasks/Start', { containerId: id }, { deadline: createDeadline })
      return running(channel, life, pid, pipe)
    } catch (error) {
      await pipe.close()
      await removeContainer(channel, id, life).catch(() => {})
      throw error
    }
  }
}

function running(channel: Channel, life: Life, pid: number, pipe: Pipe): Run {
  const { id } = life.definition
  const drained = copy(pipe.stream, life.output)
  const exit = waitForTask(channel, id, life).then(async (end) => {
    await removeContainer(channel, id, life).catch((error: Error) => life.note(`Leftovers of the container stay: ${error.message}`))
    // With its task the runtime's own hold on the pipe is gone: what is left in it is the last output, then its end.
    await within(drained, drainLimit, life.clock)
    await pipe.close()
    return end
  })
  return {
    description: `Started task ${id} (PID ${pid}) for container ${id}`,
    pid,
    exit,
    kill: async (name) => {
      const all = name === 'SIGKILL'
      await unlessGone(channel.unary('containerd.services.tasks.v1.Tasks/Kill', { containerId: id, signal: signals[name], all }))
    },
  }
}

/** The end of a task, waited for over any number of containerd's own lives. */
async function waitForTask(channel: Channel, id: string, { clock }: Life): Promise<Exit> {
  for (;;) {
    try {
      const { exitStatus } = await channel.unary('containerd.services.tasks.v1.Tasks/Wait', { containerId: id }, { deadline: 0 })
      return ended(id, exitStatus)
    } catch (error) {
      if (failedAs(error, 'NotFound')) return { ok: false, message: `Task ${id} is gone` }
      await clock.sleep(retryDelay)
    }
  }
}

/** Shells and runc tell a signal as 128 and its number. */
function ended(id: string, status: number): Exit {
  const how = status > 128 ? `was killed by signal ${status - 128}` : `exited with code ${status}`
  return { ok: status === 0, message: `Task ${id} ${how}` }
}

async function imageOf(channel: Channel, reference: string): Promise<ImageContents> {
  const image = await imageContents(channel, reference)
  if (!image) throw new Error(`image "${reference}" is not there`)
  return image
}

function folderMount({ folder, readonly }: { folder: string; readonly?: boolean }): Mount[] {
  return [{ type: 'bind', source: folder, target: '', options: ['bind', readonly ? 'ro' : 'rw'] }]
}

/** Waits for something no longer than so many milliseconds. */
async function within(done: Promise<void>, limit: number, clock: Clock): Promise<void> {
  const over = new AbortController()
  await Promise.race([done, clock.sleep(limit, over.signal)])
  over.abort()
}

async function copy(stream: ReadableStream<Uint8Array>, output: LogRing): Promise<void> {
  try {
    for await (const chunk of stream) output.write(chunk)
  } catch {
    // The pipe is closed once its container is gone.
  }
}
