import { Command, Option } from 'commander'
import type { machine } from '../../../../rpc/messages.ts'
import type { ProtoTime } from '../../../../rpc/proto-time.ts'
import { pullOn } from '../../action/pull-image.ts'
import type { Cluster } from '../../cluster.ts'
import { failedWith } from '../../failure.ts'
import { type ImageNamespace, imageInstance, imageNamespaceOption, legacyImageNamespace } from '../../image/instance.ts'
import { kubernetesImages, type Versions, versions } from '../../image/kubernetes-images.ts'
import type { Io } from '../../io.ts'
import { type OutputFlags, type OutputFormat, outputOption, structured } from '../../output/output.ts'
import { messageSchema } from '../../output/schema.ts'
import { table } from '../../output/table.ts'
import { humanSize, rfc3339 } from '../../output/units.ts'
import { cacheCertGen, cacheCreate, cacheServe } from './cache.ts'
import { talosBundle } from './talos-bundle.ts'

/** talosctl image */
export const image = (io: Io, cluster: Cluster) => {
  const command = new Command().description('See to the container images of nodes.')
  const namespace = () => command.opts<{ namespace: ImageNamespace }>().namespace
  command.addOption(imageNamespaceOption('cri'))
  command
    .command('list')
    .aliases(['l', 'ls'])
    .description('List the images of each node.')
    .addOption(outputOption(messageSchema('machine.ImageService/List')))
    .action((flags: OutputFlags) => runImageList(io, cluster, namespace(), flags))
  command
    .command('pull')
    .alias('p')
    .description('Pull an image on each node.')
    .argument('<image>', 'its reference')
    .action((reference: string) => runImagePull(io, cluster, namespace(), reference))
  command
    .command('remove')
    .alias('rm')
    .description('Remove an image from each node.')
    .argument('<image>', 'its reference')
    .action((reference: string) => runImageRemove(cluster, namespace(), reference))
  for (const make of [cacheCreate, cacheServe, cacheCertGen]) command.addCommand(make(io))
  command.addCommand(talosBundle(io))
  const bundle = command
    .command('k8s-bundle')
    .alias('default')
    .description('List the images that a cluster uses by default.')
    .argument('[ignored...]')
  for (const [name, { flag, version }] of Object.entries(versions)) {
    bundle.addOption(new Option(`--${flag} <version>`, `version of ${name}`).default(version))
  }
  bundle.action((_: string[], options: Record<string, string>) => runImageBundle(io, options))
  return command
}

/** Prints the images that a cluster with these versions uses. */
export function runImageBundle(io: Io, options: Record<string, string>): void {
  const chosen: Partial<Versions> = {}
  for (const [name, { flag }] of Object.entries(versions)) {
    const value = options[flag.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase())]
    if (value) chosen[name as keyof Versions] = value
  }
  for (const reference of kubernetesImages(chosen)) io.stdout.write(`${reference}\n`)
}

/** Milliseconds that a node may take to list its images. */
const listTimeout = 60_000
/** Milliseconds that a node may take to pull an image. */
const pullTimeout = 30 * 60_000

/** Prints name, digest, size and age of each image. */
export async function runImageList(io: Io, cluster: Cluster, namespace: ImageNamespace, { output }: OutputFlags): Promise<void> {
  const request = { containerd: imageInstance(namespace) }
  const listed = await cluster
    .collect(async function* (node, name, signal) {
      const images = cluster.stream('machine.ImageService/List', request, { node, timeout: listTimeout, signal })
      for await (const image of images) yield { node: name, ...image }
    }, listTimeout)
    .catch((error: unknown) => {
      if (!failedWith(error, 'Unimplemented')) throw error
      return undefined
    })
  if (!listed) return listByMachine(io, cluster, namespace, output)
  const { items, failure } = listed
  if (!structured(io, output, items)) {
    const rows = items.map((one) => [one.node, one.name, one.digest, humanSize(one.size), labels(one.labels), created(one.createdAt)])
    io.stdout.write(table([['NODE', 'IMAGE', 'DIGEST', 'SIZE', 'LABELS', 'CREATED'], ...rows]))
  }
  if (failure) throw failure
}

/** Pulls on every node, with progress on stderr, and prints what was pulled. */
export async function runImagePull(io: Io, cluster: Cluster, namespace: ImageNamespace, reference: string): Promise<void> {
  const pulls = cluster.each(async function* (node, name, signal) {
    yield { name, pulled: await pullOn(io, cluster, namespace, reference, { node, name, signal }) }
  }, pullTimeout)
  try {
    for await (const { name, pulled } of pulls) io.stdout.write(`${name}: ${pulled}\n`)
  } catch (error) {
    if (!failedWith(error, 'Unimplemented')) throw error
    const legacy = { namespace: legacyImageNamespace(namespace), reference }
    const messages = await cluster.ask('machine.MachineService/ImagePull', legacy, { timeout: pullTimeout })
    const peer = await cluster.peer()
    for (const message of messages) io.stdout.write(`${cluster.nodeOf(message, peer)}: ${reference}\n`)
  }
}

/** Removes an image from every named node. */
export async function runImageRemove(cluster: Cluster, namespace: ImageNamespace, reference: string): Promise<void> {
  await cluster.named(`removing "${reference}"`)
  const request = { containerd: imageInstance(namespace), imageRef: reference }
  const removals = cluster.each(async function* (node, _, signal) {
    yield await cluster.unary('machine.ImageService/Remove', request, { node, signal })
  }, listTimeout)
  for await (const _ of removals);
}

async function listByMachine(io: Io, cluster: Cluster, namespace: ImageNamespace, output: OutputFormat): Promise<void> {
  const peer = await cluster.peer()
  const request = { namespace: legacyImageNamespace(namespace) }
  const images: (Omit<machine.ImageListResponse, 'metadata'> & { node: string })[] = []
  for await (const { metadata, ...image } of cluster.stream('machine.MachineService/ImageList', request, { timeout: listTimeout }))
    images.push({ node: cluster.nodeOf({ metadata }, peer), ...image })
  if (structured(io, output, images)) return
  const rows = images.map((one) => [one.node, one.name, one.digest, humanSize(one.size), created(one.createdAt)])
  io.stdout.write(table([['NODE', 'IMAGE', 'DIGEST', 'SIZE', 'CREATED'], ...rows]))
}

function labels(all: Record<string, string>): string {
  return Object.entries(all)
    .map(([key, value]) => (value ? `${key}=${value}` : key))
    .toSorted()
    .join(',')
}

function created(time: ProtoTime | undefined): string {
  return rfc3339(time)
}
