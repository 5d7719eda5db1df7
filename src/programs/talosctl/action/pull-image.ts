import { machine as wire } from '../../../rpc/enums.ts'
import type { machine } from '../../../rpc/messages.ts'
import type { Cluster } from '../cluster.ts'
import { type ImageNamespace, imageInstance } from '../image/instance.ts'
import type { Io } from '../io.ts'
import { rate } from './byte-progress.ts'

type Layer = machine.ImageServicePullLayerProgress

/** Pulls an image on one node with progress on stderr, and gives the name it has there. */
export async function pullOn(
  io: Io,
  cluster: Cluster,
  namespace: ImageNamespace,
  reference: string,
  { node, name, signal }: { node?: string | undefined; name: string; signal?: AbortSignal },
): Promise<string> {
  const request = { containerd: imageInstance(namespace), imageRef: reference }
  const layers = new Map<string, Layer>()
  const started = performance.now()
  let pulled = reference
  try {
    for await (const message of cluster.stream('machine.ImageService/Pull', request, { node, signal })) {
      const { pullProgress } = message
      if (pullProgress?.progress) layers.set(pullProgress.layerId, pullProgress.progress)
      if (pullProgress && io.stderr.isTTY)
        io.stderr.write(`\r\u001b[K${name}: ${layerProgress([...layers.values()], performance.now() - started)}`)
      if (message.name) pulled = message.name
    }
  } finally {
    if (io.stderr.isTTY && layers.size > 0) io.stderr.write('\r\u001b[K')
  }
  return pulled
}

/** "2 of 5 layers, 12 MB of 40 MB at 3.1 MB/s, 9 s left". */
function layerProgress(layers: readonly Layer[], milliseconds: number): string {
  const { EXTRACT_COMPLETE, ALREADY_EXISTS } = wire.ImageServicePullLayerProgress.Status
  const done = layers.filter(({ status }) => status === EXTRACT_COMPLETE || status === ALREADY_EXISTS).length
  const sum = (pick: (one: Layer) => number) => layers.reduce((total, one) => total + pick(one), 0)
  return `${done} of ${layers.length} layers, ${rate(
    sum((one) => one.offset),
    milliseconds,
    sum((one) => one.total),
  )}`
}
