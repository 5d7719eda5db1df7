/** A device of which only some stretches are at hand: what is asked for beyond them is not read, and nothing is read past the end. */
import { DecodeError } from '../decode-error.ts'

/** A stretch of a device. */
export interface Stretch {
  offset: number
  bytes: Uint8Array
}

/** How a device is seen. */
export interface DeviceView {
  /** Bytes of the whole device. */
  readonly size: number
  /** So many bytes from there; undefined where they are not at hand. */
  bytes(offset: number, length: number): Uint8Array | undefined
}

/** A view of these stretches. */
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

/** As `bytes`, and DecodeError where they are not at hand. */
export function within(view: DeviceView, offset: number, length: number, what: string): Uint8Array {
  const bytes = view.bytes(offset, length)
  if (!bytes) throw new DecodeError(what, offset, 'outside of what is at hand')
  return bytes
}
