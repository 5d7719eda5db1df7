import { DecodeError } from '../decode-error.ts'
import type { BlockAccess } from './block-access.ts'
import { FatError } from './fat-error.ts'
import { clusterSize, endOfChain, type Geometry, infoSector } from './geometry.ts'

/** An entry is these bits; the others are reserved, ignored and kept. */
const entryBits = 0x0fffffff

/** The allocation table in memory: for each cluster the next one of its chain. Changes reach the disk by `write`. */
export class ClusterTable {
  readonly #device: BlockAccess
  readonly #geometry: Geometry
  readonly #entries: Uint32Array
  /** Sectors of the table that differ from the disk. */
  readonly #dirty = new Set<number>()
  #hint = 2
  #free = 0

  private constructor(device: BlockAccess, geometry: Geometry, entries: Uint32Array) {
    this.#device = device
    this.#geometry = geometry
    this.#entries = entries
  }

  /** Reads the first copy of the table. */
  static async read(device: BlockAccess, geometry: Geometry): Promise<ClusterTable> {
    const { sectorSize } = geometry
    const bytes = await device.read(geometry.reserved * sectorSize, geometry.tableSectors * sectorSize)
    // Entries are little endian, as every machine that runs this is.
    return new ClusterTable(device, geometry, new Uint32Array(new Uint8Array(bytes.subarray(0, (geometry.clusters + 2) * 4)).buffer))
  }

  /** Free clusters, known from `retain` on. */
  get free(): number {
    return this.#free
  }

  /** The clusters of a chain. Throws DecodeError when it leads outside or is longer than `limit`. */
  chain(first: number, limit: number): number[] {
    const chain: number[] = []
    for (let at = first; at < endOfChain; at = this.#entry(at)) {
      if (at < 2 || at >= this.#entries.length) throw new DecodeError('FAT32 table', at, 'a chain leads outside')
      if (chain.length >= limit) throw new DecodeError('FAT32 table', at, 'a chain does not end')
      chain.push(at)
    }
    return chain
  }

  /** Frees every cluster that is not named; those marked as bad stay. */
  retain(named: Uint8Array): void {
    const entries = this.#entries
    for (let cluster = 2; cluster < entries.length; cluster++) {
      const value = (entries[cluster] ?? 0) & entryBits
      if (value === 0) this.#free++
      else if (value !== 0x0ffffff7 && !named[cluster]) this.set(cluster, 0)
    }
  }

  /** Free clusters for `path`, in order. Throws FatError when there are too few. */
  allocate(count: number, path: string): number[] {
    const found: number[] = []
    const total = this.#entries.length - 2
    for (let step = 0; step < total && found.length < count; step++) {
      const cluster = 2 + ((this.#hint - 2 + step) % total)
      if (this.#entry(cluster) === 0) found.push(cluster)
    }
    if (found.length < count) {
      const unit = clusterSize(this.#geometry)
      throw new FatError('full', `no room for "${path}": it takes ${count * unit} bytes, ${found.length * unit} are free`)
    }
    found.sort((a, b) => a - b)
    this.#hint = found.at(-1) ?? this.#hint
    return found
  }

  /** Chains clusters in their order. */
  link(clusters: readonly number[]): void {
    for (const [index, cluster] of clusters.entries()) this.set(cluster, clusters[index + 1] ?? 0x0fffffff)
  }

  /** Sets the entry of a cluster; 0 frees it. */
  set(cluster: number, value: number): void {
    if (this.#entry(cluster) === 0) this.#free--
    if (value === 0) this.#free++
    this.#entries[cluster] = ((this.#entries[cluster] ?? 0) & ~entryBits) | value
    this.#dirty.add(Math.floor((cluster * 4) / this.#geometry.sectorSize))
  }

  #entry(cluster: number): number {
    return (this.#entries[cluster] ?? 0) & entryBits
  }

  /** Writes the changed sectors of every copy of the table, then the number of free clusters. */
  async write(): Promise<void> {
    if (this.#dirty.size === 0) return
    const geometry = this.#geometry
    const { sectorSize } = geometry
    const perSector = sectorSize / 4
    const sectors = [...this.#dirty].sort((a, b) => a - b)
    for (let table = geometry.tables - 1; table >= 0; table--) {
      for (const { first, count } of runs(sectors)) {
        const bytes = Buffer.alloc(count * sectorSize)
        for (let index = 0; index < count * perSector; index++)
          bytes.writeUInt32LE(this.#entries[first * perSector + index] ?? 0, index * 4)
        await this.#device.write((geometry.reserved + table * geometry.tableSectors + first) * sectorSize, bytes)
      }
    }
    this.#dirty.clear()
    await this.#device.write(geometry.info * sectorSize, infoSector(this.#free, this.#hint))
    await this.#device.flush()
  }
}

/** Consecutive numbers, as runs. */
export function runs(numbers: readonly number[]): { first: number; count: number }[] {
  const found: { first: number; count: number }[] = []
  for (const number of numbers) {
    const last = found.at(-1)
    if (last && last.first + last.count === number) last.count++
    else found.push({ first: number, count: 1 })
  }
  return found
}
