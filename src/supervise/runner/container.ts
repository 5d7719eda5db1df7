/**
 * Runs a container of containerd. Leftovers of an earlier run with the same name are removed first. The container
 * survives the end of containerd, because its shim is a process of its own; a broken connection is no sign of its end.
 */

import type { Clock } from '../../cosi/clock.ts'
import type { Channel } from '../../rpc/client/channel.ts'
import type { containerd } from '../../rpc/messages.ts'
import { type Containerd, failedAs, unlessGone } from '../containerd/client.ts'
import { createContainer, createDeadline, prepareSnapshot, removeContainer, signals } from '../containerd/containers.ts'
import { type ImageContents, imageContents } from '../containerd/images.ts'
import type { Exit, Run, RunContext, Runner } from '../definition.ts'
import type { LogRing } from '../log-ring.ts'

/** A named pipe that this process reads. */
export interface Pipe {
  readonly path: string
  readonly stream: ReadableStream<Uint8Array>
  /** Called once the container has opened the pipe: from then on the stream ends with its last writer. */
  opened(): void
  close(): Promise<void>
}

/** Source of a container's root file system. */
export type RootSource = { readonly folder: string; readonly readonly?: boolean } | { readonly image: string }

/** A container and where it runs. */
export interface ContainerOptions {
  readonly containerd: Containerd
  readonly namespace: string
  readonly root: RootSource | ((context: RunContext) => RootSource)
  /** Builds the OCI specification; `image` is present when the root is an image. */
  readonly spec: (context: RunContext, image: ImageContents | undefined) => object | Promise<object>
  /** Creates a named pipe for the container's output. */
  readonly makePipe: (id: string) => Pipe
  /** Removes what the OCI runtime has kept of a container that containerd no longer knows. */
  readonly purge?: (id: string) => Promise<void>
  readonly labels?: Readonly<Record<string, string>>
}

type Mount = containerd.types.Mount
const retryDelay = 300
/** Milliseconds to wait for the last output: a process that left its container may hold the pipe open. */
const drainLimit = 1000

/** Runs a container whose id is the service's. */
export function container(options: ContainerOptions): Runner {
  return async (context) => {
    const { id } = context.definition
    const channel = options.containerd.in(options.namespace)
    await removeContainer(channel, id, context)
    await options.purge?.(id)
    const root = typeof options.root === 'function' ? options.root(context) : options.root
    const { image, rootfs } = 'image' in root ? await unpacked(channel, id, root.image) : { image: undefined, rootfs: folderMount(root) }
    const spec = await options.spec(context, image)
    await createContainer(channel, id, spec, image, options.labels ?? {})
    const pipe = options.makePipe(id)
    try {
      const { pid } = await channel.unary(
        'containerd.services.tasks.v1.Tasks/Create',
        { containerId: id, rootfs, stdout: pipe.path, stderr: pipe.path },
        { deadline: createDeadline },
      )
      pipe.opened()
      context.created(pid)
      await channel.unary('containerd.services.tasks.v1.Tasks/Start', { containerId: id }, { deadline: createDeadline })
      return running(channel, context, pid, pipe)
    } catch (error) {
      await pipe.close()
      await removeContainer(channel, id, context).catch(() => {})
      throw error
    }
  }
}

function running(channel: Channel, context: RunContext, pid: number, pipe: Pipe): Run {
  const { id } = context.definition
  const drained = copy(pipe.stream, context.output)
  const exit = waitForTask(channel, id, context).then(async (end) => {
    await removeContainer(channel, id, context).catch((error: Error) => context.note(`remove container failed: ${error.message}`))
    // Deleting the task closes the runtime's own descriptor of the pipe, so the stream ends after the last output.
    await within(drained, drainLimit, context.clock)
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

/** Waits for a task to exit, over any number of restarts of containerd. */
async function waitForTask(channel: Channel, id: string, { clock }: RunContext): Promise<Exit> {
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

/** runc reports a signal as exit status 128 plus its number. */
function ended(id: string, status: number): Exit {
  const how = status > 128 ? `was killed by signal ${status - 128}` : `exited with code ${status}`
  return { ok: status === 0, killed: status > 128, message: `Task ${id} ${how}` }
}

async function unpacked(channel: Channel, id: string, reference: string): Promise<{ image: ImageContents; rootfs: Mount[] }> {
  const image = await imageOf(channel, reference)
  return { image, rootfs: await prepareSnapshot(channel, id, image) }
}

async function imageOf(channel: Channel, reference: string): Promise<ImageContents> {
  const image = await imageContents(channel, reference)
  if (!image) throw new Error(`image "${reference}" does not exist`)
  return image
}

function folderMount({ folder, readonly }: { folder: string; readonly?: boolean }): Mount[] {
  return [{ type: 'bind', source: folder, target: '', options: ['bind', readonly ? 'ro' : 'rw'] }]
}

/** Waits for a promise, at most `limit` milliseconds. */
async function within(promise: Promise<void>, limit: number, clock: Clock): Promise<void> {
  const over = new AbortController()
  await Promise.race([promise, clock.sleep(limit, over.signal)])
  over.abort()
}

async function copy(stream: ReadableStream<Uint8Array>, output: LogRing): Promise<void> {
  try {
    for await (const chunk of stream) output.write(chunk)
  } catch {
    // The pipe is closed when its container is removed.
  }
}
