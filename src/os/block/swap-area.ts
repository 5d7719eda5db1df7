import { swapHeader } from '../../wire/swap.ts'
import type { Kernel } from '../kernel.ts'

/** Makes a device an area to swap to. */
export async function writeSwapArea(block: Pick<Kernel['block'], 'openDevice'>, path: string, label?: string): Promise<void> {
  const device = await block.openDevice(path, { write: true, exclusive: true })
  try {
    const header = swapHeader({ size: device.size, uuid: crypto.randomUUID(), label })
    if (!header) throw new Error(`make swap area on "${path}": ${device.size} bytes are too few`)
    await device.write(0, header)
    await device.flush()
  } finally {
    await device.close()
  }
}
