/** A device of which only some ranges are in memory: nothing outside of them is read, and nothing past the end. */
import { DecodeError } from '../decode-error.ts'

/** A range of a device. */
export interface Stretch {
  offset: number
  bytes: Uint8Array
}

/** Read access to a device. */
export interface DeviceView {
  /** Size of the whole device in bytes. */
  readonly size: number
  /** The bytes of a range; undefined where they are not in memory. */
  bytes(offset: number, length: number): Uint8Array | undefined
}

/** A view of these ranges. */
export function viewOf(size: number, stretches: readonly Stretch[]): DeviceView {
  return {
    size,
    bytes(offset, length) {
      if (offset < 0 || length < 0 || offset + length > size) return undefined
      const stretch = stretches.find((each) => offset >= each.offset && offset + length <= each.offset + each.bytes.length)
      return stretch?.bytes.subarray(offset - stretch.offset, offset - stretch.offset + length)
    },
  }
}

/** As `bytes`; throws DecodeError where they are not in memory. */
export function within(view: DeviceView, offset: number, length: number, what: string): Uint8Array {
  const bytes = view.bytes(offset, length)
  if (!bytes) throw new DecodeError(what, offset, 'outside of what is at hand')
  return bytes
}
