import type { BlockAccess, Content } from './block-access.ts'
import { runs } from './cluster-table.ts'
import { chunk, clusterOffset, clusterSize, type Geometry } from './geometry.ts'

/** Writes content of exactly `size` bytes into clusters, the last one padded with zeros. */
export async function fillClusters(
  device: BlockAccess,
  geometry: Geometry,
  clusters: readonly number[],
  { content, size, path }: { content: Content; size: number; path: string },
): Promise<void> {
  const unit = clusterSize(geometry)
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
      await device.write(clusterOffset(geometry, place.first), bytes.subarray(at, at + length))
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

/** Changes the start of what clusters hold, sector by sector, where it differs. */
export async function changeClusters(
  device: BlockAccess,
  geometry: Geometry,
  clusters: readonly number[],
  bytes: Uint8Array,
): Promise<void> {
  const unit = clusterSize(geometry)
  const { sectorSize } = geometry
  for (let at = 0; at < bytes.length; at += sectorSize) {
    const offset = clusterOffset(geometry, clusters[Math.floor(at / unit)] ?? 0) + (at % unit)
    const part = bytes.subarray(at, at + sectorSize)
    const old = await device.read(offset, sectorSize)
    if (Buffer.compare(old.subarray(0, part.length), part) === 0) continue
    const sector = Uint8Array.from(old)
    sector.set(part)
    await device.write(offset, sector)
    await device.flush()
  }
}
