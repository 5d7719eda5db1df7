/**
 * The META partition. At every moment of a write one complete copy exists, old or new: the second copy is verified before the
 * first is written, and written only after the first is on the medium.
 */
import { DecodeError } from '../../../wire/decode-error.ts'
import { advSize, type MetaValues, metaCopySize, readAdv, readMeta, writeAdv, writeMeta } from '../../../wire/meta.ts'
import type { Device } from '../device.ts'

interface Copy {
  bytes: Uint8Array
  values: Map<number, Uint8Array>
}

/** The content of a partition: its values, and those of the legacy area. */
export interface MetaContent {
  values: Map<number, Uint8Array>
  legacy: Map<number, Uint8Array>
}

type Media = Pick<Device, 'size' | 'read' | 'write' | 'flush'>

/** Reads both areas. An unreadable area counts as empty. */
export async function readMetaPartition(device: Media): Promise<MetaContent> {
  const [first, second] = await copies(device, values)
  const [oldFirst, oldSecond] = await copies(device, legacy)
  return { values: (first ?? second)?.values ?? new Map(), legacy: (oldFirst ?? oldSecond)?.values ?? new Map() }
}

/** Writes both areas; the legacy area only if it differs. */
export async function writeMetaPartition(device: Media, content: { values: MetaValues; legacy: MetaValues }): Promise<void> {
  await replace(device, values, content.values)
  const [first, second] = await copies(device, legacy)
  const present = (first ?? second)?.bytes
  if (present && !Buffer.from(present).equals(writeAdv(content.legacy))) await replace(device, legacy, content.legacy)
}

/** One of the two areas: its encoding and location. */
interface Area {
  size: number
  places(device: Media): readonly [number, number]
  read(bytes: Uint8Array): Map<number, Uint8Array>
  write(values: MetaValues): Uint8Array
}

const values: Area = { size: metaCopySize, places: () => [0, metaCopySize], read: readMeta, write: writeMeta }
const legacy: Area = { size: advSize, places: ({ size }) => [size - 2 * advSize, size - advSize], read: readAdv, write: writeAdv }

async function copies(device: Media, area: Area): Promise<[Copy | undefined, Copy | undefined]> {
  const [first, second] = area.places(device)
  return [await copy(device, area, first), await copy(device, area, second)]
}

async function copy(device: Media, area: Area, at: number): Promise<Copy | undefined> {
  const bytes = await device.read(at, area.size)
  try {
    return { bytes, values: area.read(bytes) }
  } catch (error) {
    if (error instanceof DecodeError) return undefined
    throw error
  }
}

async function replace(device: Media, area: Area, wanted: MetaValues): Promise<void> {
  const [first, second] = area.places(device)
  const [inFirst, inSecond] = await copies(device, area)
  const put = async (at: number, bytes: Uint8Array) => {
    await device.write(at, bytes)
    await device.flush()
  }
  if (inFirst && !(inSecond && Buffer.from(inSecond.bytes).equals(inFirst.bytes))) await put(second, inFirst.bytes)
  const bytes = area.write(wanted)
  await put(first, bytes)
  await put(second, bytes)
}
