import { systemClock } from '../../../cosi/clock.ts'
import type { Channel } from '../../../rpc/client/channel.ts'
import { common, machine as enums } from '../../../rpc/enums.ts'
import type { machine } from '../../../rpc/messages.ts'
import { toDuration } from '../../../rpc/proto-time.ts'
import { clientStream, type Method, operators, readers, serverStream, unary } from '../../../rpc/server/method.ts'
import { RpcError } from '../../../rpc/status.ts'
import { listImages, type PullProgress, pullImage, removeImage } from '../../../supervise/containerd/images.ts'
import { importImage } from '../../../supervise/containerd/import-image.ts'
import type { StoreView } from '../../../supervise/definition.ts'
import { messageOf } from '../../../wire/error-message.ts'
import { channelOfInstance } from '../containerd-instance.ts'
import { credentialsOf } from '../credentials.ts'
import { criDaemon, hostsFolder } from '../daemons.ts'
import { fullReference } from '../image-table.ts'
import { RegistryConfig } from '../resources/registry-config.ts'

const { NS_CRI, NS_SYSTEM } = common.ContainerdNamespace
const { Status } = enums.ImageServicePullLayerProgress

/** Images of pods (`cri`), of the system's services (`system`) and of the system's own daemon: list, pull, import, remove. */
export const imageMethods = (): Method[] => [
  serverStream('machine.ImageService/List', readers, async function* ({ containerd }) {
    for (const { created, ...image } of await listImages(channelOfInstance(containerd))) yield { ...image, createdAt: created }
  }),
  serverStream('machine.ImageService/Pull', operators, async function* ({ containerd, imageRef }, { store, signal }) {
    const name = referenceOf(imageRef)
    for await (const progress of pulling(channelOfInstance(containerd), name, store, signal)) yield { pullProgress: progress }
    yield { name }
  }),
  clientStream('machine.ImageService/Import', ['os:admin'], async (messages, { signal }) => {
    const requests = messages[Symbol.asyncIterator]()
    const { value: first } = await requests.next()
    if (!first?.containerd) throw new RpcError('InvalidArgument', 'the first message must name the daemon that the image is for')
    return { name: await importImage(channelOfInstance(first.containerd), chunksOf(requests), signal) }
  }),
  unary('machine.ImageService/Remove', ['os:admin'], async ({ containerd, imageRef }) => {
    await removeImage(channelOfInstance(containerd), referenceOf(imageRef))
    return {}
  }),
  serverStream('machine.MachineService/ImageList', readers, async function* ({ namespace }) {
    for (const { name, digest, size, created } of await listImages(legacyChannel(namespace)))
      yield { name, digest, size, createdAt: created }
  }),
  unary('machine.MachineService/ImagePull', operators, async ({ namespace, reference }, { store, signal }) => {
    for await (const _ of pulling(legacyChannel(namespace), referenceOf(reference), store, signal)) {
      // Only the end is reported.
    }
    return { messages: [{}] }
  }),
]

/** The archive that the caller sends, piece by piece. */
async function* chunksOf(requests: AsyncIterator<machine.ImageServiceImportRequest>): AsyncGenerator<Uint8Array> {
  for (let next = await requests.next(); !next.done; next = await requests.next()) {
    const { containerd, imageChunk } = next.value
    if (containerd) throw new RpcError('InvalidArgument', 'the daemon is given once, in the first message')
    if (imageChunk) yield imageChunk.bytes
  }
}

function legacyChannel(namespace: number): Channel {
  if (namespace === NS_CRI) return criDaemon.in('k8s.io')
  if (namespace === NS_SYSTEM) return criDaemon.in('system')
  throw new RpcError('InvalidArgument', 'namespace of the image is not known: give system or cri')
}

function referenceOf(text: string): string {
  try {
    return fullReference(text)
  } catch (error) {
    throw new RpcError('InvalidArgument', messageOf(error))
  }
}

/** The progress of a pull until it has ended. Throws the error that ended it. */
async function* pulling(channel: Channel, name: string, store: StoreView, signal: AbortSignal) {
  const queue: PullProgress[] = []
  const begun = new Map<string, number>()
  let wake = () => {}
  let ended = false
  const progress = (item: PullProgress) => {
    queue.push(item)
    wake()
  }
  const credentials = credentialsOf(store.get(RegistryConfig, 'registries')?.spec.auths)
  const pull = pullImage(channel, name, { hostsDir: hostsFolder, credentials, progress, signal }).finally(() => {
    ended = true
    wake()
  })
  pull.catch(() => {})
  while (!ended || queue.length > 0) {
    const item = queue.shift()
    if (item) {
      const message = progressMessage(item, begun)
      if (message) yield message
    } else
      await new Promise<void>((resolve) => {
        wake = resolve
      })
  }
  await pull
}

const statuses: Record<string, number> = {
  waiting: Status.DOWNLOADING,
  downloading: Status.DOWNLOADING,
  complete: Status.DOWNLOAD_COMPLETE,
  extracting: Status.EXTRACTING,
  extracted: Status.EXTRACT_COMPLETE,
  'already exists': Status.ALREADY_EXISTS,
  exists: Status.ALREADY_EXISTS,
}

function progressMessage({ event, name, offset, total }: PullProgress, begun: Map<string, number>) {
  const status = statuses[event]
  if (status === undefined || !name.startsWith('layer-')) return undefined
  const layerId = name.slice('layer-'.length)
  const now = systemClock.elapsed()
  const start = begun.get(layerId) ?? now
  begun.set(layerId, start)
  const elapsed = toDuration(Math.floor(now - start))
  return { layerId, progress: { status, elapsed, offset, total } }
}
