/** Taking from devices what is on them. */
import type { Device } from './device.ts'
import { mebibyte } from './sizes.ts'

/** Clears the front and the end of a stretch of a device, where signatures lie. */
export async function wipeSignatures(device: Pick<Device, 'write' | 'flush'>, offset: number, size: number): Promise<void> {
  const length = Math.min(mebibyte, size)
  const nothing = new Uint8Array(length)
  await device.write(offset, nothing)
  if (size > length) await device.write(offset + size - length, nothing)
  await device.flush()
}
