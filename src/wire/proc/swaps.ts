/** /proc/swaps: what is swapped to. */

/** An area in use. Sizes in bytes. */
export interface SwapArea {
  device: string
  type: string
  size: number
  used: number
  priority: number
}

/** Reads the file; its first line names the columns, sizes are in KiB. */
export function parseSwaps(text: string): SwapArea[] {
  return text
    .trim()
    .split('\n')
    .slice(1)
    .flatMap((line) => {
      const [device, type, size, used, priority] = line.trim().split(/\s+/)
      if (device === undefined || type === undefined || priority === undefined) return []
      return [
        { device: device.replaceAll('\\040', ' '), type, size: Number(size) * 1024, used: Number(used) * 1024, priority: Number(priority) },
      ]
    })
}
