import { stat } from 'node:fs/promises'
import { Command } from 'commander'
import { machine as wire } from '../../../../rpc/enums.ts'
import type { Init } from '../../../../rpc/server/method.ts'
import { ByteProgress } from '../../action/byte-progress.ts'
import { pullOn } from '../../action/pull-image.ts'
import type { Cluster } from '../../cluster.ts'
import { ExitCode, UsageError } from '../../failure.ts'
import { list } from '../../flags.ts'
import { type ImageNamespace, imageInstance, imageNamespaceOption } from '../../image/instance.ts'
import type { Io } from '../../io.ts'
import { type Keyboard, processKeyboard } from '../../keyboard.ts'

interface DebugOptions {
  args?: string[]
  namespace: ImageNamespace
}

type Request = Init<import('../../../../rpc/messages.ts').machine.DebugContainerRunRequest>

const examples = `
Examples:
  talosctl debug -n 10.5.0.2 docker.io/library/alpine:latest      a shell on the node; its files are at /host
  talosctl debug -n 10.5.0.2 ./tools.tar                          the same with an image from this machine
  talosctl debug -n 10.5.0.2 alpine -- ls /host/var/log           one program; its exit code is the command's
  cat script | talosctl debug -n 10.5.0.2 alpine -- sh            what a program reads
`

/** talosctl debug */
export const debug = (io: Io, cluster: Cluster) =>
  new Command()
    .description(
      'Run a container that sees the whole node, from an image the node pulls or an archive on this machine. It is removed at the end.',
    )
    .argument('<image>', 'reference of an image, or an archive of one ("docker save", OCI layout)')
    .argument('[args...]', 'program and arguments in place of the image’s')
    .option('--args <arg>', 'the same, comma separated', list())
    .addOption(imageNamespaceOption('inmem'))
    .addHelpText('after', examples)
    .action((image: string, args: string[], options: DebugOptions) =>
      runDebug(io, cluster, image, { ...options, args: options.args ?? args }, processKeyboard()),
    )

/** Brings the image to the node, and this terminal to the container; ends with the container's exit code. */
export async function runDebug(io: Io, cluster: Cluster, image: string, options: DebugOptions, keyboard: Keyboard): Promise<void> {
  await cluster.single('debug')
  const [node] = await cluster.named('running a debug container')
  const imageName = await provided(io, cluster, options.namespace, image, node ?? '')
  let exitCode: number | undefined
  const abort = new AbortController()
  const signal = AbortSignal.any([io.signal, abort.signal])
  const terminal = keyboard.terminal?.()
  const spec = {
    containerd: imageInstance(options.namespace),
    imageName,
    args: options.args ?? [],
    env: io.env.TERM && terminal ? { TERM: io.env.TERM } : {},
    profile: wire.DebugContainerRunRequestSpec.Profile.PROFILE_PRIVILEGED,
    tty: terminal !== undefined,
  }
  try {
    for await (const reply of cluster.bidi('machine.DebugService/ContainerRun', requests(spec, keyboard, signal), { signal })) {
      if (reply.stdoutData) {
        io.stdout.write(reply.stdoutData)
        await io.stdout.drained()
      }
      if (reply.exitCode === undefined) continue
      exitCode = reply.exitCode
      break
    }
  } finally {
    abort.abort()
    keyboard.close()
  }
  if (exitCode === undefined) throw new Error('the container ended without an exit code')
  if (exitCode !== 0) throw new ExitCode(exitCode)
}

/** What is typed or piped in, and the sizes of the terminal, as they come. */
async function* requests(spec: Request['spec'], keyboard: Keyboard, signal: AbortSignal): AsyncGenerator<Request> {
  yield { spec }
  for await (const event of keyboard.events(signal)) {
    if ('bytes' in event) yield { stdinData: event.bytes }
    else yield { termResize: { width: event.columns, height: event.rows } }
  }
}

/** The name under which the node has the image now. */
async function provided(io: Io, cluster: Cluster, namespace: ImageNamespace, image: string, node: string): Promise<string> {
  const found = await stat(image).catch(() => undefined)
  if (!found && /^[./]/.test(image)) throw new UsageError(`"${image}" is not there: name an archive of an image, or the reference of one`)
  if (!found) return pullOn(io, cluster, namespace, image, { node, name: node })
  if (!found.isFile()) throw new UsageError(`"${image}" is no file: name an archive of an image`)
  const progress = new ByteProgress(io, 'sending the image', found.size)
  const { createReadStream } = await import('node:fs')
  async function* chunks() {
    yield { containerd: imageInstance(namespace) }
    let sent = 0
    for await (const chunk of createReadStream(image, { highWaterMark: 256 * 1024 })) {
      yield { imageChunk: { bytes: chunk as Uint8Array } }
      sent += (chunk as Uint8Array).length
      progress.at(sent)
    }
  }
  try {
    return (await cluster.upload('machine.ImageService/Import', chunks())).name
  } finally {
    progress.end()
  }
}
