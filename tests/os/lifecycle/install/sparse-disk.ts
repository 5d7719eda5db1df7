import type { KernelPartition } from '../../../../src/linux/block.ts'
import type { Device } from '../../../../src/os/block/device.ts'

const page = 1 << 16

/** A large disk of which only what was written takes memory. */
export class SparseDisk {
  readonly #pages = new Map<number, Uint8Array>()

  constructor(
    readonly size: number,
    readonly sectorSize = 512,
  ) {}

  read(offset: number, length: number): Uint8Array {
    if (offset < 0 || offset + length > this.size) throw new RangeError(`read at ${offset} lies outside`)
    const bytes = new Uint8Array(length)
    for (let done = 0; done < length; ) {
      const [at, within] = [Math.floor((offset + done) / page), (offset + done) % page]
      const count = Math.min(page - within, length - done)
      const held = this.#pages.get(at)
      if (held) bytes.set(held.subarray(within, within + count), done)
      done += count
    }
    return bytes
  }

  write(offset: number, bytes: Uint8Array): void {
    if (offset < 0 || offset + bytes.length > this.size) throw new RangeError(`write at ${offset} lies outside`)
    for (let done = 0; done < bytes.length; ) {
      const [at, within] = [Math.floor((offset + done) / page), (offset + done) % page]
      const count = Math.min(page - within, bytes.length - done)
      const part = bytes.subarray(done, done + count)
      done += count
      let held = this.#pages.get(at)
      if (!held && part.every((byte) => byte === 0)) continue
      if (!held) {
        held = new Uint8Array(page)
        this.#pages.set(at, held)
      }
      held.set(part, within)
    }
  }
}

/** The kernel's block devices: one disk under a path, and the partitions it was told of. */
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
