/**
 * A FAT32 file system on anything that reads, writes and flushes. The order of writes makes every change survive a power cut: a
 * file's contents reach the disk before the table that chains them, and the table before the one sector that names the file. What
 * is interrupted before that leaves unreferenced clusters, which the next writer reclaims. Referenced data is never overwritten,
 * except by `overwrite`, which changes the contents of a file in place, sector by sector.
 */
import { DecodeError } from '../decode-error.ts'
import type { BlockAccess, Content } from './block-access.ts'
import { ClusterTable, runs } from './cluster-table.ts'
import {
  type DirectoryEntry,
  deletedSlots,
  directoryLimit,
  encodeEntry,
  type NewEntry,
  parseDirectory,
  pointSlot,
  roomFor,
  sameSector,
  shortSlot,
  slotSize,
} from './directory.ts'
import { FatError } from './fat-error.ts'
import { changeClusters, fillClusters } from './fill-clusters.ts'
import { chunk, clusterOffset, clusterSize, type Geometry, headerSize, parseBootSector } from './geometry.ts'
import { namedClusters } from './named-clusters.ts'

/** An open file system. One writer at a time. */
export class FatVolume {
  readonly #device: BlockAccess
  readonly #table: ClusterTable

  private constructor(
    device: BlockAccess,
    readonly geometry: Geometry,
    table: ClusterTable,
  ) {
    this.#device = device
    this.#table = table
  }

  /** Opens a file system; unreferenced clusters, left by a power cut, count as free. Throws DecodeError when it is malformed. */
  static async open(device: BlockAccess): Promise<FatVolume> {
    const geometry = parseBootSector(await device.read(0, headerSize), device.size)
    const volume = new FatVolume(device, geometry, await ClusterTable.read(device, geometry))
    volume.#table.retain(await namedClusters(volume.#table, geometry, (cluster) => volume.#readChain(cluster, directoryLimit)))
    return volume
  }

  get #slotsPerSector(): number {
    return this.geometry.sectorSize / slotSize
  }

  /** Free bytes for new files. */
  get free(): number {
    return this.#table.free * clusterSize(this.geometry)
  }

  /** The entries of a directory; empty when it does not exist. */
  async list(path: string): Promise<DirectoryEntry[]> {
    const cluster = await this.#directory(path)
    return cluster === undefined ? [] : parseDirectory(await this.#readChain(cluster, directoryLimit))
  }

  /** Whether a file or directory exists; names are case-insensitive. */
  async has(path: string): Promise<boolean> {
    return (await this.#find(path)) !== undefined
  }

  /** The contents of a file, refused beyond `limit`. */
  async read(path: string, limit = 16 << 20): Promise<Uint8Array> {
    const parts: Uint8Array[] = []
    const entry = await this.#file(path)
    if (entry.size > limit) throw new FatError('kind', `file "${path}" is larger than ${limit} bytes`)
    for await (const part of this.stream(path)) parts.push(part)
    return Buffer.concat(parts)
  }

  /** The contents of a file, piece by piece. */
  async *stream(path: string): AsyncGenerator<Uint8Array> {
    const { cluster, size } = await this.#file(path)
    const clusters = size === 0 ? [] : this.#table.chain(cluster, this.geometry.clusters)
    const unit = clusterSize(this.geometry)
    if (clusters.length * unit < size) throw new DecodeError('FAT32 file', size, `"${path}" has too few clusters`)
    let left = size
    for (const { first, count } of runs(clusters)) {
      for (let at = 0; at < count * unit && left > 0; at += chunk) {
        const length = Math.min(chunk, count * unit - at, left)
        yield await this.#device.read(clusterOffset(this.geometry, first) + at, length)
        left -= length
      }
    }
  }

  /** Writes a new file of exactly `size` bytes. Throws FatError when it exists or there is no space; then nothing has changed. */
  async create(path: string, content: Content, size = sizeOf(content)): Promise<void> {
    const { parent, name } = await this.#place(path)
    await this.#store(path, { content, size }, (cluster) => this.#add(parent, { name, directory: false, cluster, size }))
  }

  /** Writes a file that takes the place of the one of that name, if there is one, by the write of one sector. */
  async replace(path: string, content: Content, size = sizeOf(content)): Promise<void> {
    const found = await this.#find(path)
    if (!found) return this.create(path, content, size)
    const { cluster, slot, slots } = await this.#file(path)
    const first = await this.#store(path, { content, size })
    // The name's last slot is the short one, with the first cluster and the size.
    const offset = this.#slotOffset(this.#table.chain(found.parent, directoryLimit), slot + slots - 1)
    await this.#patch(offset, (sector, at) => pointSlot(sector.subarray(at, at + slotSize), first, size))
    await this.#device.flush()
    await this.#free(cluster)
  }

  /** Writes contents into free clusters and has `name` enter them in a directory. Returns the first cluster, 0 for an empty file. */
  async #store(
    path: string,
    { content, size }: { content: Content; size: number },
    name: (cluster: number) => Promise<void> = async () => {},
  ): Promise<number> {
    if (size < 0 || size > 0xffffffff) throw new RangeError(`file "${path}": a size of ${size} bytes`)
    const clusters = this.#table.allocate(Math.ceil(size / clusterSize(this.geometry)), path)
    const [first = 0] = clusters
    try {
      await fillClusters(this.#device, this.geometry, clusters, { content, size, path })
      await this.#device.flush()
      this.#table.link(clusters)
      await this.#table.write()
      await name(first)
    } catch (error) {
      for (const cluster of clusters) this.#table.set(cluster, 0)
      await this.#table.write().catch(() => {}) // the first error is the one to report
      throw error
    }
    return first
  }

  /** Frees the clusters of a file that no directory names any more. */
  async #free(first: number): Promise<void> {
    if (first >= 2) for (const cluster of this.#table.chain(first, this.geometry.clusters)) this.#table.set(cluster, 0)
    await this.#table.write()
  }

  /** Creates a directory and its parents. */
  async mkdirAll(path: string): Promise<void> {
    const parts = partsOf(path)
    for (let depth = 1; depth <= parts.length; depth++) {
      const at = `/${parts.slice(0, depth).join('/')}`
      if ((await this.#directory(at)) === undefined) await this.#mkdir(at)
    }
  }

  /** Removes a file, if it exists. The name is removed first, then its clusters are freed. */
  async remove(path: string): Promise<void> {
    const found = await this.#find(path)
    if (!found) return
    const { entry, parent } = found
    if (entry.directory) throw new FatError('kind', `"${path}" is a directory`)
    const clusters = this.#table.chain(parent, directoryLimit)
    const offset = this.#slotOffset(clusters, entry.slot)
    // Entries written here have all slots in one sector; those of other writers may not, and are removed from the last on.
    const places = Array.from({ length: entry.slots }, (_, index) => this.#slotOffset(clusters, entry.slot + index))
    if (sameSector(places, this.geometry.sectorSize)) {
      await this.#patch(offset, (sector, at) => sector.set(deletedSlots(sector.subarray(at, at + entry.slots * slotSize)), at))
    } else {
      for (const place of places.toReversed()) {
        await this.#patch(place, (sector, at) => sector.set(deletedSlots(sector.subarray(at, at + slotSize)), at))
      }
    }
    await this.#device.flush()
    await this.#free(entry.cluster)
  }

  /** Overwrites the start of a file without changing its length; writes only sectors that differ. */
  async overwrite(path: string, bytes: Uint8Array): Promise<void> {
    const { cluster, size } = await this.#file(path)
    if (bytes.length > size) throw new FatError('kind', `file "${path}" has ${size} bytes, not ${bytes.length}`)
    await changeClusters(this.#device, this.geometry, this.#table.chain(cluster, this.geometry.clusters), bytes)
  }

  async #file(path: string): Promise<DirectoryEntry> {
    const found = await this.#find(path)
    if (!found) throw new FatError('absent', `there is no file "${path}"`)
    if (found.entry.directory) throw new FatError('kind', `"${path}" is a directory`)
    return found.entry
  }

  async #find(path: string): Promise<{ entry: DirectoryEntry; parent: number } | undefined> {
    let parent = this.geometry.rootCluster
    let entry: DirectoryEntry | undefined
    for (const part of partsOf(path)) {
      if (entry) {
        if (!entry.directory) return undefined
        parent = entry.cluster || this.geometry.rootCluster
      }
      const entries = parseDirectory(await this.#readChain(parent, directoryLimit))
      entry = entries.find(({ name }) => name.toLowerCase() === part.toLowerCase())
      if (!entry) return undefined
    }
    return entry && { entry, parent }
  }

  async #directory(path: string): Promise<number | undefined> {
    if (partsOf(path).length === 0) return this.geometry.rootCluster
    const found = await this.#find(path)
    if (found && !found.entry.directory) throw new FatError('kind', `"${path}" is not a directory`)
    return found?.entry.cluster
  }

  /** The directory and the name of a new entry. */
  async #place(path: string): Promise<{ parent: number; name: string }> {
    const parts = partsOf(path)
    const name = parts.pop()
    if (!name) throw new FatError('kind', `"${path}" names no file`)
    if (await this.#find(path)) throw new FatError('present', `"${path}" is there already`)
    const parent = await this.#directory(`/${parts.join('/')}`)
    if (parent === undefined) throw new FatError('absent', `there is no directory for "${path}"`)
    return { parent, name }
  }

  async #mkdir(path: string): Promise<void> {
    const { parent, name } = await this.#place(path)
    const clusters = this.#table.allocate(1, path)
    const [cluster = 0] = clusters
    const bytes = new Uint8Array(clusterSize(this.geometry))
    shortSlot(bytes, '.'.padEnd(11), true, cluster, 0)
    shortSlot(bytes.subarray(slotSize), '..'.padEnd(11), true, parent === this.geometry.rootCluster ? 0 : parent, 0)
    await this.#device.write(clusterOffset(this.geometry, cluster), bytes)
    await this.#device.flush()
    this.#table.link(clusters)
    await this.#table.write()
    await this.#add(parent, { name, directory: true, cluster, size: 0 })
  }

  /** Adds an entry to a directory with a single write of one sector. */
  async #add(directory: number, entry: NewEntry): Promise<void> {
    const bytes = await this.#readChain(directory, directoryLimit)
    const slots = encodeEntry(entry, parseDirectory(bytes))
    const needed = slots.length / slotSize
    if (needed > this.#slotsPerSector) throw new FatError('kind', `the name "${entry.name}" is too long`)
    const room = roomFor(bytes, needed, this.#slotsPerSector)
    const at = room ?? bytes.length / slotSize
    if (room === undefined) await this.#growDirectory(directory)
    await this.#closeGap(directory, bytes, at)
    const offset = this.#slotOffset(this.#table.chain(directory, directoryLimit), at)
    await this.#patch(offset, (sector, place) => sector.set(slots, place))
    await this.#device.flush()
  }

  /** A never-used slot ends a directory: slots between the end and a new entry are marked as deleted instead. */
  async #closeGap(directory: number, bytes: Uint8Array, at: number): Promise<void> {
    const clusters = this.#table.chain(directory, directoryLimit)
    let changed = false
    for (let slot = at - 1; slot >= 0 && bytes[slot * slotSize] === 0; slot--) {
      // From the last to the first, so that a reader stops before them until all are marked.
      await this.#patch(this.#slotOffset(clusters, slot), (sector, place) => sector.set([0xe5], place))
      changed = true
    }
    if (changed) await this.#device.flush()
  }

  async #growDirectory(directory: number): Promise<void> {
    const [cluster = 0] = this.#table.allocate(1, 'a directory')
    await this.#device.write(clusterOffset(this.geometry, cluster), new Uint8Array(clusterSize(this.geometry)))
    await this.#device.flush()
    this.#table.link([cluster])
    await this.#table.write()
    this.#table.set(this.#table.chain(directory, directoryLimit).at(-1) ?? directory, cluster)
    await this.#table.write()
  }

  async #patch(offset: number, change: (sector: Uint8Array, at: number) => void): Promise<void> {
    const { sectorSize } = this.geometry
    const begin = offset - (offset % sectorSize)
    const sector = Uint8Array.from(await this.#device.read(begin, sectorSize))
    change(sector, offset - begin)
    await this.#device.write(begin, sector)
  }

  #slotOffset(clusters: readonly number[], slot: number): number {
    const unit = clusterSize(this.geometry)
    const at = slot * slotSize
    return clusterOffset(this.geometry, clusters[Math.floor(at / unit)] ?? 0) + (at % unit)
  }

  async #readChain(cluster: number, limit: number): Promise<Uint8Array> {
    const unit = clusterSize(this.geometry)
    const parts = runs(this.#table.chain(cluster, limit)).map(({ first, count }) =>
      this.#device.read(clusterOffset(this.geometry, first), count * unit),
    )
    return Buffer.concat(await Promise.all(parts))
  }
}

const sizeOf = (content: Content): number => (content instanceof Uint8Array ? content.length : -1)

function partsOf(path: string): string[] {
  return path.split('/').filter((part) => part !== '')
}
