/**
 * A container in which an operator inspects the machine: it sees all of it, its own files are those of the image, and it ends
 * with the call that requested it. What a call could not clean up is removed by the next one.
 */

import { randomBytes } from 'node:crypto'
import { systemClock } from '../../cosi/clock.ts'
import type { Channel } from '../../rpc/client/channel.ts'
import type { machine } from '../../rpc/messages.ts'
import { RpcError } from '../../rpc/status.ts'
import { failedAs, unlessGone } from '../../supervise/containerd/client.ts'
import { createContainer, createDeadline, prepareSnapshot, removeContainer, signals } from '../../supervise/containerd/containers.ts'
import { type ImageContents, imageContents } from '../../supervise/containerd/images.ts'
import { ociSpec } from '../../supervise/containerd/spec.ts'
import type { Kernel } from '../kernel.ts'
import { fullReference } from './image-table.ts'
import { bindMount } from './service-container.ts'

type Spec = machine.DebugContainerRunRequestSpec
type Request = machine.DebugContainerRunRequest
type Reply = { stdoutData: Uint8Array } | { exitCode: number }
type InputFifo = ReturnType<Kernel['fifo']['makeInputFifo']>
type KernelCalls = Pick<Kernel, 'files' | 'fifo' | 'capabilities' | 'cgroup' | 'selinux'>

/** Parent of the containers' control groups. */
const group = '/system/debug'
const pipesFolder = '/system/run/pipes'
const label = 'ichor/debug'
/** Milliseconds to wait for more output after the container has exited. */
const lastOutput = 5000

/**
 * Runs the container: requests are its input, replies its output, at last its exit code. Aborting kills it. `held` are the
 * containers of all running calls; others are leftovers.
 */
export async function* runDebugContainer(
  kernel: KernelCalls,
  held: Set<string>,
  channel: Channel,
  spec: Spec,
  requests: AsyncIterator<Request>,
  signal: AbortSignal,
): AsyncGenerator<Reply> {
  const image = await imageContents(channel, reference(spec.imageName))
  if (!image) throw new RpcError('NotFound', `image "${spec.imageName}" is not on this machine: pull or import it first`)
  const args = spec.args.length > 0 ? spec.args : [...image.entrypoint, ...image.cmd]
  if (args.length === 0) throw new RpcError('InvalidArgument', `image "${spec.imageName}" names no program: give one as argument`)
  const id = `debug-${randomBytes(8).toString('hex')}`
  held.add(id)
  const { fifo, files } = kernel
  files.mkdirAll(pipesFolder, { mode: 0o700 })
  await removeLeftovers(kernel, held, channel)
  const input = fifo.makeInputFifo(`${pipesFolder}/${id}.in`)
  const output = fifo.makeEndingFifo(`${pipesFolder}/${id}.out`)
  const remove = () => removeContainer(channel, id, { clock: systemClock })
  try {
    signal.throwIfAborted()
    const rootfs = await prepareSnapshot(channel, id, image)
    await createContainer(channel, id, containerSpec(kernel, id, spec, args, image), image, { [label]: 'true' })
    const task = {
      containerId: id,
      rootfs,
      stdin: input.path,
      stdout: output.path,
      stderr: spec.tty ? '' : output.path,
      terminal: spec.tty,
    }
    await startable(channel.unary('containerd.services.tasks.v1.Tasks/Create', task, { deadline: createDeadline }))
    output.opened()
    await startable(channel.unary('containerd.services.tasks.v1.Tasks/Start', { containerId: id }, { deadline: createDeadline }))
    const kill = () => {
      send(channel, id, signals.SIGKILL).catch(() => {}) // removing the container below does the rest
    }
    signal.addEventListener('abort', kill)
    if (signal.aborted) kill()
    const closeOutput = () => {
      output.close().catch(() => {}) // it is closed again at the end, where errors are reported
    }
    // The output ends when the task is removed; a process that has left its container may hold it open.
    const exit = exitOf(channel, id, signal).then(async (code) => {
      await remove()
      setTimeout(closeOutput, lastOutput).unref()
      return code
    })
    exit.catch(closeOutput)
    const fed = feed(channel, id, spec.tty, requests, input)
    fed.catch(kill)
    for await (const chunk of output.stream) yield { stdoutData: chunk }
    const exitCode = await exit
    signal.removeEventListener('abort', kill)
    yield { exitCode }
  } finally {
    input.close()
    await remove().finally(() => {
      held.delete(id)
      return output.close()
    })
  }
}

/** A program that is missing in the image is the caller's mistake. containerd passes on runc's error as text, without a code. */
async function startable<T>(call: Promise<T>): Promise<T> {
  try {
    return await call
  } catch (error) {
    const { message } = error as Error
    if (/executable file not found|no such file or directory|permission denied/.test(message))
      throw new RpcError('InvalidArgument', `start the container: ${message.slice(message.lastIndexOf('exec:')).replace(/: unknown$/, '')}`)
    throw error
  }
}

/** Forwards the caller's requests. The end of the requests closes the input, or the terminal. */
async function feed(channel: Channel, id: string, tty: boolean, requests: AsyncIterator<Request>, input: InputFifo): Promise<void> {
  for (let next = await requests.next(); !next.done; next = await requests.next()) {
    const { stdinData, signal, termResize, spec } = next.value
    if (spec) throw new RpcError('InvalidArgument', 'the container is described once')
    if (stdinData) await input.write(stdinData)
    else if (signal !== undefined) await send(channel, id, signal)
    else if (termResize) await unlessGone(channel.unary('containerd.services.tasks.v1.Tasks/ResizePty', { containerId: id, ...termResize }))
  }
  if (tty) return send(channel, id, signals.SIGHUP)
  // The container's shim holds the writing end open as well.
  input.close()
  await unlessGone(channel.unary('containerd.services.tasks.v1.Tasks/CloseIO', { containerId: id, stdin: true }))
}

async function send(channel: Channel, id: string, signal: number): Promise<void> {
  const all = signal === signals.SIGKILL
  await unlessGone(channel.unary('containerd.services.tasks.v1.Tasks/Kill', { containerId: id, signal, all })).catch((error) => {
    // It has ended in between.
    if (!failedAs(error, 'FailedPrecondition', 'InvalidArgument')) throw error
  })
}

async function exitOf(channel: Channel, id: string, signal: AbortSignal): Promise<number> {
  for (;;) {
    try {
      return (await channel.unary('containerd.services.tasks.v1.Tasks/Wait', { containerId: id }, { deadline: 0 })).exitStatus
    } catch (error) {
      if (!failedAs(error, 'Unavailable') || signal.aborted) throw error
      // The daemon was restarted; the container still runs.
      await systemClock.sleep(500, signal)
    }
  }
}

async function removeLeftovers({ files }: KernelCalls, held: ReadonlySet<string>, channel: Channel): Promise<void> {
  const pipes = files.list(pipesFolder).filter((name) => /^debug-\w+\.(in|out)$/.test(name))
  for (const name of pipes) if (!held.has(name.replace(/\.\w+$/, ''))) files.removeFile(`${pipesFolder}/${name}`)
  const { containers } = await channel.unary('containerd.services.containers.v1.Containers/List', {})
  const left = containers.filter(({ id, labels }) => labels[label] !== undefined && !held.has(id))
  await Promise.all(left.map(({ id }) => removeContainer(channel, id, { clock: systemClock })))
}

function containerSpec(
  { files, capabilities, cgroup, selinux }: KernelCalls,
  id: string,
  spec: Spec,
  args: readonly string[],
  image: ImageContents,
): object {
  const known = ['/etc/hosts', '/etc/resolv.conf', '/system/resolved'].filter(files.exists)
  return ociSpec({
    args,
    env: merged(image.env, spec.env),
    cwd: image.workingDir,
    terminal: spec.tty,
    privileged: true,
    capabilities: capabilities.boundingSet().map((name) => `CAP_${name.toUpperCase()}`),
    hostPid: true,
    hostIpc: true,
    mounts: [
      bindMount('/dev', { writable: true }),
      bindMount('/sys', { writable: true }),
      bindMount('/', { destination: '/host', writable: true }),
      ...known.map((path) => bindMount(path)),
    ],
    cgroup: `${group}/${id}`,
    selinuxLabel: selinux.processLabel('debug_t'),
    cgroupVersion: cgroup.hierarchy().version,
  })
}

function merged(env: readonly string[], given: Readonly<Record<string, string>>): string[] {
  const kept = env.filter((variable) => !Object.hasOwn(given, variable.split('=')[0] ?? ''))
  return [...kept, ...Object.entries(given).map(([name, value]) => `${name}=${value}`)]
}

function reference(text: string): string {
  try {
    return fullReference(text)
  } catch {
    // Imported under its own name.
    return text
  }
}
