/** The files of a system extension while it is read or built. */
import { createWriteStream } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { TarEntry } from '../../../wire/tar/read.ts'
import type { ExtensionEntry } from './content.ts'
import { ExtensionError, manifestLimit } from './manifest.ts'

/** An entry of an image, of a package or of a folder; its name is relative to the root of the image. */
export type SourceEntry = Pick<TarEntry, 'name' | 'type' | 'mode' | 'size' | 'target' | 'content'>

const mostEntries = 200_000
const mostBytes = 8 * 1024 ** 3

/** A path of the image, and what is below it. */
interface Node {
  entry: ExtensionEntry | undefined
  /** The layer that `entry` is from. */
  layer: number
  readonly below: Map<string, Node>
}

const emptyNode = (): Node => ({ entry: undefined, layer: 0, below: new Map() })

/** The file system of an extension's image, layer by layer (OCI image specification, "Applying Changesets"). */
export class ExtensionFiles {
  readonly #root = emptyNode()
  #layer = 0
  #number = 0
  #count = 0
  #bytes = 0
  #manifest: Uint8Array | undefined

  constructor(
    readonly origin: string,
    readonly folder: string,
  ) {}

  /** What is added from now on lies above what was added before. */
  beginLayer(): void {
    this.#layer++
  }

  /** Adds an entry, whose content is read. Throws ExtensionError. */
  async add(entry: SourceEntry): Promise<void> {
    if (++this.#count > mostEntries) throw this.#wrong(`it has more than ${mostEntries} entries`)
    const steps = this.#steps(entry.name)
    const name = steps.at(-1)
    if (name === undefined) return
    const [top] = steps
    if (name.startsWith('.wh.')) return this.#whiteOut(steps.slice(0, -1), name)
    if (top === 'manifest.yaml' && steps.length === 1) this.#manifest = Buffer.concat(await this.#small(entry))
    else if (top !== 'rootfs')
      throw this.#wrong(`"/${steps.join('/')}" is not expected: an extension has only "manifest.yaml" and "rootfs"`)
    else await this.#put(steps, entry)
  }

  /** Throws ExtensionError when a part of the extension is missing. */
  result(): { manifest: Uint8Array; entries: ExtensionEntry[] } {
    if (!this.#manifest) throw this.#wrong('"manifest.yaml" is missing')
    const rootfs = this.#root.below.get('rootfs')
    if (!rootfs) throw this.#wrong('"rootfs" is missing')
    const entries: ExtensionEntry[] = []
    const waiting = [...rootfs.below.values()]
    for (let node = waiting.pop(); node; node = waiting.pop()) {
      if (node.entry) entries.push(node.entry)
      waiting.push(...node.below.values())
    }
    return { manifest: this.#manifest, entries: entries.sort((a, b) => Buffer.compare(Buffer.from(a.path), Buffer.from(b.path))) }
  }

  #steps(name: string): string[] {
    const steps = name.split('/').filter((step) => step !== '' && step !== '.')
    if (steps.includes('..') || name.includes('\0')) throw this.#wrong(`"${name}" leads out of the image`)
    return steps
  }

  async #small(entry: SourceEntry): Promise<Uint8Array[]> {
    if (entry.type !== 'file') throw this.#wrong('"manifest.yaml" is no file')
    if (entry.size > manifestLimit) throw this.#wrong(`"manifest.yaml" has ${entry.size} bytes, more than ${manifestLimit}`)
    return await Array.fromAsync(entry.content)
  }

  async #put(steps: readonly string[], entry: SourceEntry): Promise<void> {
    let node = this.#root
    for (const step of steps) {
      // A folder replaces what a lower layer has at a place that this layer goes through.
      if (node.entry && node.entry.type !== 'dir') node.entry = undefined
      const next = node.below.get(step) ?? emptyNode()
      node.below.set(step, next)
      node = next
    }
    node.entry = await this.#entry(`/${steps.slice(1).join('/')}`, entry)
    node.layer = this.#layer
    if (node.entry.type !== 'dir') node.below.clear()
  }

  async #entry(path: string, entry: SourceEntry): Promise<ExtensionEntry> {
    const { type, mode } = entry
    if (type === 'directory') return { path, type: 'dir', mode, size: 0 }
    if (type === 'symlink') return { path, type: 'symlink', mode: 0o777, size: 0, target: entry.target }
    if (type === 'hardlink') {
      const same = this.#at(this.#steps(entry.target))?.entry
      if (same?.type !== 'file') throw this.#wrong(`hard link "${path}" leads to "${entry.target}", which is no file before it`)
      return { ...same, path }
    }
    if (type !== 'file') return { path, type: 'other', mode, size: 0 }
    this.#bytes += entry.size
    if (this.#bytes > mostBytes) throw this.#wrong(`its files have more than ${mostBytes} bytes`)
    const source = join(this.folder, `${this.#number++}`)
    await pipeline(Readable.from(entry.content), createWriteStream(source))
    return { path, type: 'file', mode, size: entry.size, source }
  }

  #at(steps: readonly string[]): Node | undefined {
    let node: Node | undefined = this.#root
    for (const step of steps) node = node?.below.get(step)
    return node
  }

  /** `.wh.NAME` hides NAME of lower layers, `.wh..wh..opq` all that they have in the folder. */
  #whiteOut(folder: readonly string[], name: string): void {
    const parent = this.#at(folder)
    if (!parent) return
    if (name !== '.wh..wh..opq') parent.below.delete(name.slice('.wh.'.length))
    else for (const [key, node] of parent.below) if (!this.#fromThisLayer(node)) parent.below.delete(key)
  }

  /** Drops what lower layers have below a node; whether anything is left. */
  #fromThisLayer(node: Node): boolean {
    for (const [key, child] of node.below) if (!this.#fromThisLayer(child)) node.below.delete(key)
    return node.layer === this.#layer || node.below.size > 0
  }

  #wrong(fault: string): ExtensionError {
    return new ExtensionError(this.origin, [fault])
  }
}
