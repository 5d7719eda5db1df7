import type { ImageRecord, ImageTable } from '../../oci/image.ts'
import { formatReference, parseReference } from '../../oci/reference.ts'
import { type OwnImage, provideImage } from '../../supervise/containerd/own-images.ts'
import type { Kernel } from '../kernel.ts'
import { criDaemon } from './daemons.ts'
import { imagesFile } from './registryd.ts'

/** Each layer of those images as a folder, named after the hexadecimal digits of its digest. */
const layersFolder = '/usr/share/ichor/layers'

type Doors = Pick<Kernel, 'files' | 'mount'>

/** The images that the root file system holds. */
export function readImageTable({ files }: Pick<Kernel, 'files'>): ImageTable {
  return JSON.parse(files.readText(imagesFile)) as ImageTable
}

/** A reference in the full form that containerd knows images by. Throws ImageReferenceError. */
export const fullReference = (reference: string): string => formatReference(parseReference(reference))

/** Makes one of those images known in a namespace of the pods' daemon; false when the root file system does not hold it. */
export async function provideOwnImage(doors: Doors, reference: string, namespace: string): Promise<boolean> {
  const name = fullReference(reference)
  const record = readImageTable(doors).images.find((image) => fullReference(image.reference) === name)
  const image = record && ownImage(doors, record)
  if (!image) return false
  await provide(doors, image, namespace)
  return true
}

/** The images of the root file system in the namespace of pods: provided once in each of the daemon's lives. */
export class OwnImages {
  readonly #doors: Doors
  #providing?: Promise<void>

  constructor(doors: Doors) {
    this.#doors = doors
  }

  /** A new life of the daemon begins: it knows none of them. */
  forget(): void {
    this.#providing = undefined
  }

  /** Resolves when all are known; a failure is tried again at the next call. Those without folders are left to be pulled. */
  provided(): Promise<void> {
    this.#providing ??= this.#provide().catch((error) => {
      this.#providing = undefined
      throw error
    })
    return this.#providing
  }

  async #provide(): Promise<void> {
    const images = readImageTable(this.#doors).images.map((record) => ownImage(this.#doors, record))
    for (const image of images) if (image) await provide(this.#doors, image, 'k8s.io')
  }
}

const known = new WeakMap<Doors, OwnImages>()

/** The one OwnImages of a machine. */
export function ownImagesOf(kernel: Doors): OwnImages {
  let images = known.get(kernel)
  if (!images) {
    images = new OwnImages(kernel)
    known.set(kernel, images)
  }
  return images
}

function ownImage({ files }: Doors, { reference, digest, mediaType, manifest, config, layers }: ImageRecord): OwnImage | undefined {
  const folders = layers.map((layer) => ({ digest: layer.digest, folder: `${layersFolder}/${layer.digest.slice('sha256:'.length)}` }))
  if (!folders.every(({ folder }) => files.exists(folder))) return undefined
  return { name: fullReference(reference), digest, mediaType, manifest, config, layers: folders }
}

/** In a namespace one at a time: images share layers. */
const last = new Map<string, Promise<unknown>>()

function provide({ mount }: Doors, image: OwnImage, namespace: string): Promise<void> {
  const show = (source: string, target: string) => {
    if (!mount.mountAt(target)) mount.bind(source, target, { flags: ['ro'] })
  }
  const turn = (last.get(namespace) ?? Promise.resolve()).then(() => provideImage(criDaemon.in(namespace), image, show))
  last.set(
    namespace,
    turn.catch(() => {}),
  )
  return turn
}
