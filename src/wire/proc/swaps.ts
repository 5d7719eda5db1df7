/** /proc/swaps: the active swap areas. */

/** An active swap area. Sizes in bytes. */
export interface SwapArea {
  device: string
  type: string
  size: number
  used: number
  priority: number
}

/** Parses the file; its first line has the column names, sizes are in KiB. */
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
