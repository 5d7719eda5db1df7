import type { ImageRecord, ImageTable } from '../../oci/image.ts'
import { formatReference, parseReference } from '../../oci/reference.ts'
import { imageContents } from '../../supervise/containerd/images.ts'
import { type Layers, type OwnImage, provideImage } from '../../supervise/containerd/own-images.ts'
import type { Kernel } from '../kernel.ts'
import { copyLayer } from './copy-layer.ts'
import { criDaemon } from './daemons.ts'
import { imagesFile } from './registryd.ts'

/** Each layer of those images as a folder, named after the hexadecimal digits of its digest. */
const layersFolder = '/usr/share/ichor/layers'

type KernelCalls = Pick<Kernel, 'files' | 'mount'>

/** The images that the root file system holds. */
export function readImageTable({ files }: Pick<Kernel, 'files'>): ImageTable {
  return JSON.parse(files.readText(imagesFile)) as ImageTable
}

/** The full form of a reference, by which containerd knows images. Throws ImageReferenceError. */
export const fullReference = (reference: string): string => formatReference(parseReference(reference))

/** The images of the root file system. Each is registered with the pods' daemon once after each start of the daemon. */
export class OwnImages {
  readonly #kernel: KernelCalls
  #images = new Map<string, Promise<void>>()
  #layers = new Map<string, Layers>()
  #all?: Promise<void> | undefined

  constructor(kernel: KernelCalls) {
    this.#kernel = kernel
  }

  /** Call when the daemon starts: it knows none of the images. */
  forget(): void {
    this.#images = new Map()
    this.#layers = new Map()
    this.#all = undefined
  }

  /** Resolves when pods can use all of them; a failure is retried at the next call. Images without folders are left to be pulled. */
  provided(): Promise<void> {
    this.#all ??= this.#provideAll().catch((error) => {
      this.#all = undefined
      throw error
    })
    return this.#all
  }

  async #provideAll(): Promise<void> {
    const images = readImageTable(this.#kernel).images.map((record) => ownImage(this.#kernel, record))
    await Promise.all(images.map((image) => image && this.#provide(image, 'k8s.io')))
  }

  /** Registers one of them in a namespace; false when the root file system does not contain it. */
  async provide(reference: string, namespace: string): Promise<boolean> {
    const name = fullReference(reference)
    const record = readImageTable(this.#kernel).images.find((image) => fullReference(image.reference) === name)
    const image = record && ownImage(this.#kernel, record)
    if (!image) return false
    await this.#provide(image, namespace)
    // It may have been removed since.
    if (await imageContents(criDaemon.in(namespace), name)) return true
    this.forget()
    await this.#provide(image, namespace)
    return true
  }

  #provide(image: OwnImage, namespace: string): Promise<void> {
    const images = this.#images
    const key = `${namespace} ${image.name}`
    let provided = images.get(key)
    if (!provided) {
      provided = provideImage(criDaemon.in(namespace), image, this.#show, this.#layersOf(namespace))
      images.set(key, provided)
      provided.catch(() => {
        if (this.#images === images) this.forget()
      })
    }
    return provided
  }

  #layersOf(namespace: string): Layers {
    let layers = this.#layers.get(namespace)
    if (!layers) {
      layers = new Map()
      this.#layers.set(namespace, layers)
    }
    return layers
  }

  readonly #show = async (source: string, target: string): Promise<void> => {
    const { mount, files } = this.#kernel
    if (mount.mountAt(target) || (await copyLayer(files, source, target))) return
    mount.bind(source, target, { flags: ['ro'] })
  }
}

function ownImage({ files }: KernelCalls, { reference, digest, mediaType, manifest, config, layers }: ImageRecord): OwnImage | undefined {
  const folders = layers.map((layer) => ({ digest: layer.digest, folder: `${layersFolder}/${layer.digest.slice('sha256:'.length)}` }))
  if (!folders.every(({ folder }) => files.exists(folder))) return undefined
  return { name: fullReference(reference), digest, mediaType, manifest, config, layers: folders }
}
