import { swapHeader } from '../../wire/swap.ts'
import type { Kernel } from '../kernel.ts'
import { known, withDevice } from './device.ts'

/** Formats a device as swap area. */
export const writeSwapArea = (block: Pick<Kernel['block'], 'openDevice'>, path: string, label?: string): Promise<void> =>
  withDevice(block, path, { ...known, write: true, exclusive: true }, async (device) => {
    const header = swapHeader({ size: device.size, uuid: crypto.randomUUID(), label })
    if (!header) throw new Error(`make swap area on "${path}": ${device.size} bytes are too small`)
    await device.write(0, header)
    await device.flush()
  })
