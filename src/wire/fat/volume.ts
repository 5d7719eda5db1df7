/**
 * A FAT32 file system on anything that reads, writes and flushes. The order of writes makes every change survive a power cut: a
 * file's contents reach the disk before the table that chains them, and the table before the one sector that names the file. What
 * is interrupted before that leaves unreferenced clusters, which the next writer reclaims. Referenced data is never overwritten,
 * except by `overwrite`, which changes the contents of a file in place, sector by sector.
 */
import { DecodeError } from '../decode-error.ts'
import {
  type DirectoryEntry,
  deletedSlots,
  encodeEntry,
  isFree,
  labelSlot,
  type NewEntry,
  parseDirectory,
  shortSlot,
  slotSize,
} from './directory.ts'
import {
  bootSector,
  clusterOffset,
  clusterSize,
  type Division,
  endOfChain,
  type Geometry,
  geometryFor,
  headerSize,
  infoSector,
  parseBootSector,
} from './geometry.ts'

/** A disk, partition or image file. */
export interface BlockAccess {
  /** Size in bytes. */
  readonly size: number
  read(offset: number, length: number): Promise<Uint8Array>
  write(offset: number, bytes: Uint8Array): Promise<void>
  /** Flushes everything written before. */
  flush(): Promise<void>
}

/** An operation that the file system does not allow. */
export class FatError extends Error {
  override name = 'FatError'

  constructor(
    readonly reason: 'full' | 'absent' | 'present' | 'kind',
    message: string,
  ) {
    super(message)
  }
}

/** Contents of a file to write, in pieces of any length. */
export type Content = Uint8Array | AsyncIterable<Uint8Array>

/** Limit of clusters per directory: larger ones were not written here. */
const directoryLimit = 256
const chunk = 1 << 20

/** Options of a new file system. */
export interface FatFormat extends Division {
  label: string
  serial: number
  /** First sector of its partition on the disk. */
  hidden?: number
}

/** Creates an empty file system, regardless of previous contents. */
export async function formatFat(device: BlockAccess, { label, serial, hidden = 0, ...division }: FatFormat): Promise<void> {
  const geometry = geometryFor(device.size, label, division)
  const { sectorSize } = geometry
  const tables = geometry.tables * geometry.tableSectors * sectorSize
  // The boot sector comes last: until then the device is not recognised as a file system.
  const start = Buffer.alloc(geometry.reserved * sectorSize)
  await device.write(0, start)
  await device.flush()
  for (let at = 0; at < tables; at += chunk) await device.write(start.length + at, new Uint8Array(Math.min(chunk, tables - at)))
  const first = Buffer.alloc(sectorSize)
  for (const [index, value] of [0x0ffffff8, 0x0fffffff, 0x0fffffff].entries()) first.writeUInt32LE(value, index * 4)
  for (let table = 0; table < geometry.tables; table++) await device.write(start.length + table * geometry.tableSectors * sectorSize, first)
  const root = Buffer.alloc(clusterSize(geometry))
  root.set(labelSlot(label))
  await device.write(clusterOffset(geometry, geometry.rootCluster), root)
  await device.flush()
  const info = infoSector(geometry.clusters - 1, 3)
  const boot = bootSector(geometry, { serial, hidden })
  for (const at of [6, 0]) {
    start.set(boot, at * sectorSize)
    start.set(info, (at + geometry.info) * sectorSize)
  }
  await device.write(sectorSize, start.subarray(sectorSize))
  await device.write(0, start.subarray(0, sectorSize))
  await device.flush()
}

/** An open file system. One writer at a time. */
export class FatVolume {
  readonly #device: BlockAccess
  readonly #table: Uint32Array
  /** Sectors of the table that differ from the disk. */
  readonly #dirty = new Set<number>()
  #hint = 2
  /** Free clusters. */
  #free = 0

  private constructor(
    device: BlockAccess,
    readonly geometry: Geometry,
    table: Uint32Array,
  ) {
    this.#device = device
    this.#table = table
  }

  /** Opens a file system; unreferenced clusters, left by a power cut, count as free. Throws DecodeError when it is malformed. */
  static async open(device: BlockAccess): Promise<FatVolume> {
    const geometry = parseBootSector(await device.read(0, headerSize), device.size)
    const { sectorSize } = geometry
    const bytes = await device.read(geometry.reserved * sectorSize, geometry.tableSectors * sectorSize)
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const table = new Uint32Array(geometry.clusters + 2)
    for (let index = 0; index < table.length; index++) table[index] = view.getUint32(index * 4, true) & 0x0fffffff
    const volume = new FatVolume(device, geometry, table)
    await volume.#reclaim()
    return volume
  }

  get #slotsPerSector(): number {
    return this.geometry.sectorSize / slotSize
  }

  /** Free bytes for new files. */
  get free(): number {
    return this.#free * clusterSize(this.geometry)
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
    const clusters = size === 0 ? [] : this.#chain(cluster, this.geometry.clusters)
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
  async create(path: string, content: Content, size = content instanceof Uint8Array ? content.length : -1): Promise<void> {
    if (size < 0 || size > 0xffffffff) throw new RangeError(`file "${path}": a size of ${size} bytes`)
    const { parent, name } = await this.#place(path)
    const clusters = this.#allocate(Math.ceil(size / clusterSize(this.geometry)), path)
    try {
      await this.#fill(clusters, content, size, path)
      await this.#device.flush()
      this.#link(clusters)
      await this.#writeTable()
      await this.#add(parent, { name, directory: false, cluster: clusters[0] ?? 0, size })
    } catch (error) {
      for (const cluster of clusters) this.#set(cluster, 0)
      await this.#writeTable().catch(() => {}) // the first error is the one to report
      throw error
    }
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
    const clusters = this.#chain(parent, directoryLimit)
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
    if (entry.cluster >= 2) for (const cluster of this.#chain(entry.cluster, this.geometry.clusters)) this.#set(cluster, 0)
    await this.#writeTable()
  }

  /** Overwrites the start of a file without changing its length; writes only sectors that differ. */
  async overwrite(path: string, bytes: Uint8Array): Promise<void> {
    const { cluster, size } = await this.#file(path)
    if (bytes.length > size) throw new FatError('kind', `file "${path}" has ${size} bytes, not ${bytes.length}`)
    const clusters = this.#chain(cluster, this.geometry.clusters)
    const unit = clusterSize(this.geometry)
    const { sectorSize } = this.geometry
    for (let at = 0; at < bytes.length; at += sectorSize) {
      const offset = clusterOffset(this.geometry, clusters[Math.floor(at / unit)] ?? 0) + (at % unit)
      const part = bytes.subarray(at, at + sectorSize)
      const old = await this.#device.read(offset, sectorSize)
      if (Buffer.compare(old.subarray(0, part.length), part) === 0) continue
      const sector = Uint8Array.from(old)
      sector.set(part)
      await this.#device.write(offset, sector)
      await this.#device.flush()
    }
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
    const clusters = this.#allocate(1, path)
    const [cluster = 0] = clusters
    const bytes = new Uint8Array(clusterSize(this.geometry))
    shortSlot(bytes, '.'.padEnd(11), true, cluster, 0)
    shortSlot(bytes.subarray(slotSize), '..'.padEnd(11), true, parent === this.geometry.rootCluster ? 0 : parent, 0)
    await this.#device.write(clusterOffset(this.geometry, cluster), bytes)
    await this.#device.flush()
    this.#link(clusters)
    await this.#writeTable()
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
    const offset = this.#slotOffset(this.#chain(directory, directoryLimit), at)
    await this.#patch(offset, (sector, place) => sector.set(slots, place))
    await this.#device.flush()
  }

  /** A never-used slot ends a directory: slots between the end and a new entry are marked as deleted instead. */
  async #closeGap(directory: number, bytes: Uint8Array, at: number): Promise<void> {
    const clusters = this.#chain(directory, directoryLimit)
    let changed = false
    for (let slot = at - 1; slot >= 0 && bytes[slot * slotSize] === 0; slot--) {
      // From the last to the first, so that a reader stops before them until all are marked.
      await this.#patch(this.#slotOffset(clusters, slot), (sector, place) => sector.set([0xe5], place))
      changed = true
    }
    if (changed) await this.#device.flush()
  }

  async #growDirectory(directory: number): Promise<void> {
    const [cluster = 0] = this.#allocate(1, 'a directory')
    await this.#device.write(clusterOffset(this.geometry, cluster), new Uint8Array(clusterSize(this.geometry)))
    await this.#device.flush()
    this.#link([cluster])
    await this.#writeTable()
    this.#set(this.#chain(directory, directoryLimit).at(-1) ?? directory, cluster)
    await this.#writeTable()
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
    const parts = runs(this.#chain(cluster, limit)).map(({ first, count }) =>
      this.#device.read(clusterOffset(this.geometry, first), count * unit),
    )
    return Buffer.concat(await Promise.all(parts))
  }

  #chain(first: number, limit: number): number[] {
    const chain: number[] = []
    for (let at = first; at < endOfChain; at = this.#table[at] ?? 0) {
      if (at < 2 || at >= this.#table.length) throw new DecodeError('FAT32 table', at, 'a chain leads outside')
      if (chain.length >= limit) throw new DecodeError('FAT32 table', at, 'a chain does not end')
      chain.push(at)
    }
    return chain
  }

  /** Frees, in memory, clusters that no directory references. */
  async #reclaim(): Promise<void> {
    const named = new Uint8Array(this.#table.length)
    const waiting = [this.geometry.rootCluster]
    for (let directory = waiting.pop(); directory !== undefined; directory = waiting.pop()) {
      if (named[directory]) throw new DecodeError('FAT32 table', directory, 'two directories share a cluster')
      for (const cluster of this.#chain(directory, directoryLimit)) named[cluster] = 1
      for (const entry of parseDirectory(await this.#readChain(directory, directoryLimit))) {
        if (entry.directory) waiting.push(entry.cluster)
        else if (entry.cluster >= 2) for (const cluster of this.#chain(entry.cluster, this.geometry.clusters)) named[cluster] = 1
      }
    }
    for (let cluster = 2; cluster < this.#table.length; cluster++) {
      const value = this.#table[cluster]
      if (value === 0) this.#free++
      else if (value !== 0x0ffffff7 && !named[cluster]) this.#set(cluster, 0)
    }
  }

  #allocate(count: number, path: string): number[] {
    const found: number[] = []
    const total = this.#table.length - 2
    for (let step = 0; step < total && found.length < count; step++) {
      const cluster = 2 + ((this.#hint - 2 + step) % total)
      if (this.#table[cluster] === 0) found.push(cluster)
    }
    if (found.length < count) {
      const unit = clusterSize(this.geometry)
      throw new FatError('full', `no room for "${path}": it takes ${count * unit} bytes, ${found.length * unit} are free`)
    }
    found.sort((a, b) => a - b)
    this.#hint = found.at(-1) ?? this.#hint
    return found
  }

  #link(clusters: readonly number[]): void {
    for (const [index, cluster] of clusters.entries()) this.#set(cluster, clusters[index + 1] ?? 0x0fffffff)
  }

  #set(cluster: number, value: number): void {
    if (this.#table[cluster] === 0) this.#free--
    if (value === 0) this.#free++
    this.#table[cluster] = value
    this.#dirty.add(Math.floor((cluster * 4) / this.geometry.sectorSize))
  }

  async #writeTable(): Promise<void> {
    if (this.#dirty.size === 0) return
    const { geometry } = this
    const { sectorSize } = geometry
    const perSector = sectorSize / 4
    const sectors = [...this.#dirty].sort((a, b) => a - b)
    for (let table = geometry.tables - 1; table >= 0; table--) {
      for (const { first, count } of runs(sectors)) {
        const bytes = Buffer.alloc(count * sectorSize)
        for (let index = 0; index < count * perSector; index++) bytes.writeUInt32LE(this.#table[first * perSector + index] ?? 0, index * 4)
        await this.#device.write((geometry.reserved + table * geometry.tableSectors + first) * sectorSize, bytes)
      }
    }
    this.#dirty.clear()
    await this.#device.write(geometry.info * sectorSize, infoSector(this.#free, this.#hint))
    await this.#device.flush()
  }

  async #fill(clusters: readonly number[], content: Content, size: number, path: string): Promise<void> {
    const unit = clusterSize(this.geometry)
    const places = runs(clusters)
    let written = 0
    let pending: Uint8Array[] = []
    let held = 0
    /** Writes whole clusters of the buffer; with `all` also the remainder, padded with zeros. */
    const put = async (all: boolean) => {
      let bytes: Uint8Array = Buffer.concat(pending)
      if (all && bytes.length % unit) bytes = Buffer.concat([bytes, new Uint8Array(unit - (bytes.length % unit))])
      const whole = bytes.length - (bytes.length % unit)
      for (let at = 0; at < whole; ) {
        const place = places[0]
        if (!place) throw new RangeError(`file "${path}" is longer than its ${size} bytes`)
        const length = Math.min(whole - at, place.count * unit)
        await this.#device.write(clusterOffset(this.geometry, place.first), bytes.subarray(at, at + length))
        at += length
        place.first += length / unit
        place.count -= length / unit
        if (place.count === 0) places.shift()
      }
      pending = [bytes.subarray(whole)]
      held = bytes.length - whole
    }
    for await (const part of content instanceof Uint8Array ? [content] : content) {
      written += part.length
      if (written > size) throw new RangeError(`file "${path}" is longer than its ${size} bytes`)
      pending.push(part)
      held += part.length
      if (held >= chunk) await put(false)
    }
    if (written !== size) throw new RangeError(`file "${path}" has ${written} bytes, not ${size}`)
    await put(true)
  }
}

function partsOf(path: string): string[] {
  return path.split('/').filter((part) => part !== '')
}

/** Consecutive numbers, as runs. */
function runs(numbers: readonly number[]): { first: number; count: number }[] {
  const found: { first: number; count: number }[] = []
  for (const number of numbers) {
    const last = found.at(-1)
    if (last && last.first + last.count === number) last.count++
    else found.push({ first: number, count: 1 })
  }
  return found
}

function sameSector(offsets: readonly number[], sectorSize: number): boolean {
  return new Set(offsets.map((offset) => Math.floor(offset / sectorSize))).size === 1
}

/** The first slot of a run of free ones within one sector. */
function roomFor(bytes: Uint8Array, needed: number, slotsPerSector: number): number | undefined {
  const total = bytes.length / slotSize
  for (let sector = 0; sector < total; sector += slotsPerSector) {
    let run = 0
    for (let slot = sector; slot < Math.min(sector + slotsPerSector, total); slot++) {
      run = isFree(bytes, slot) ? run + 1 : 0
      if (run === needed) return slot - needed + 1
    }
  }
  return undefined
}
