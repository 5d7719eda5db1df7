import { Command, Option } from 'commander'
import type { ProtoTime } from '../../../../rpc/proto-time.ts'
import { pullOn } from '../../action/pull-image.ts'
import type { Cluster } from '../../cluster.ts'
import { failedWith } from '../../failure.ts'
import { type ImageNamespace, imageInstance, imageNamespaceOption, legacyImageNamespace } from '../../image/instance.ts'
import { kubernetesImages, type Versions, versions } from '../../image/kubernetes-images.ts'
import type { Io } from '../../io.ts'
import { type OutputFlags, outputOption, structured } from '../../output/output.ts'
import { type Row, table } from '../../output/table.ts'
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
    .addOption(outputOption())
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

/** Prints name, digest, size and age of each image. */
export async function runImageList(io: Io, cluster: Cluster, namespace: ImageNamespace, { output }: OutputFlags): Promise<void> {
  const request = { containerd: imageInstance(namespace) }
  const rows: Row[] = [['NODE', 'IMAGE', 'DIGEST', 'SIZE', 'LABELS', 'CREATED']]
  const images: object[] = []
  try {
    const all = cluster.each(async function* (node, name) {
      for await (const one of cluster.stream('machine.ImageService/List', request, { node, timeout: 60_000 })) yield { name, one }
    })
    for await (const { name, one } of all) {
      images.push({ node: name, ...one })
      rows.push([name, one.name, one.digest, humanSize(one.size), labels(one.labels), created(one.createdAt)])
    }
  } catch (error) {
    if (!failedWith(error, 'Unimplemented')) throw error
    await listByMachine(io, cluster, namespace)
    return
  }
  if (structured(io, output, images)) return
  io.stdout.write(table(rows))
}

/** Pulls on every node, with progress on stderr, and prints what was pulled. */
export async function runImagePull(io: Io, cluster: Cluster, namespace: ImageNamespace, reference: string): Promise<void> {
  const pulls = cluster.each(async function* (node, name) {
    yield { name, pulled: await pullOn(io, cluster, namespace, reference, { node, name }) }
  })
  try {
    for await (const { name, pulled } of pulls) io.stdout.write(`${name}: ${pulled}\n`)
  } catch (error) {
    if (!failedWith(error, 'Unimplemented')) throw error
    const legacy = { namespace: legacyImageNamespace(namespace), reference }
    const messages = await cluster.ask('machine.MachineService/ImagePull', legacy, { timeout: 30 * 60_000 })
    const peer = await cluster.peer()
    for (const message of messages) io.stdout.write(`${cluster.nodeOf(message, peer)}: ${reference}\n`)
  }
}

/** Removes an image from every named node. */
export async function runImageRemove(cluster: Cluster, namespace: ImageNamespace, reference: string): Promise<void> {
  await cluster.named(`removing "${reference}"`)
  const removals = cluster.each(async function* (node) {
    yield await cluster.unary('machine.ImageService/Remove', { containerd: imageInstance(namespace), imageRef: reference }, { node })
  })
  for await (const _ of removals);
}

async function listByMachine(io: Io, cluster: Cluster, namespace: ImageNamespace): Promise<void> {
  const rows: Row[] = [['NODE', 'IMAGE', 'DIGEST', 'SIZE', 'CREATED']]
  const peer = await cluster.peer()
  for await (const one of cluster.stream(
    'machine.MachineService/ImageList',
    { namespace: legacyImageNamespace(namespace) },
    { timeout: 60_000 },
  )) {
    rows.push([cluster.nodeOf(one, peer), one.name, one.digest, humanSize(one.size), created(one.createdAt)])
  }
  io.stdout.write(table(rows))
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
