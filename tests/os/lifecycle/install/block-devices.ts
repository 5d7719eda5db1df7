import type { KernelPartition } from '../../../../src/linux/block/device.ts'
import type { Device } from '../../../../src/os/block/device.ts'
import type { SparseDisk } from '../../../support/sparse-disk.ts'

/** Fake block devices: one disk, and the partitions reported to the kernel. */
export function blockDevices(path: string, disk: SparseDisk) {
  let partitions: readonly KernelPartition[] = []
  return {
    writes: 0,
    async openDevice(this: { writes: number }, wanted: string): Promise<Device> {
      const index = wanted === path ? undefined : Number(wanted.slice(path.length))
      const partition = index === undefined ? { offset: 0, size: disk.size } : partitions.find((each) => each.index === index)
      if (!partition || !wanted.startsWith(path)) throw new Error(`there is no device "${wanted}"`)
      const { offset, size } = partition
      return {
        path: wanted,
        size,
        sectorSize: disk.sectorSize,
        read: async (at, length) => disk.read(offset + at, length),
        write: async (at, bytes) => {
          this.writes++
          disk.write(offset + at, bytes)
        },
        flush: async () => {},
        close: async () => {},
      }
    },
    syncPartitions(_: string, wanted: readonly KernelPartition[]): void {
      partitions = wanted
    },
  }
}
