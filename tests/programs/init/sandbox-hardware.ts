/** The hardware of a machine inside a test: one disk, its partitions and file systems, and the firmware's variables. They outlive a start. */
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { KernelPartition, OpenDevice } from '../../../src/linux/block/device.ts'
import type { CryptMapping, Mapped } from '../../../src/linux/block/device-mapper.ts'
import { SystemError } from '../../../src/linux/system-error.ts'
import { readDiskTable } from '../../../src/os/block/device.ts'
import { aesXts } from '../../../src/wire/luks2/xts.ts'
import type { Transmit } from '../../../src/wire/tpm2/tpm.ts'
import { decrypting } from '../../support/decrypting.ts'
import { SparseDisk } from '../../support/sparse-disk.ts'

const gibibyte = 2 ** 30
const busPath = 'devices/pci0000:00/0000:00:04.0/virtio1/block/vda'

/** A machine's hardware. `vda` is its disk. */
export class Hardware {
  readonly disk: SparseDisk
  readonly firmware: Map<string, Uint8Array>
  partitions: readonly (KernelPartition & { name?: string })[] = []
  /** Folders of what the file systems hold, by where on the disk they begin. */
  readonly #contents: string
  /** The root of the start that runs now. */
  #root = ''
  readonly #listeners = new Set<(names: string[]) => void>()
  /** Open encrypted mappings by name; each is `dm-` and a number. */
  readonly mappings = new Map<string, Mapped & { under: string; open: OpenDevice; head(): Uint8Array }>()
  /** Its TPM. */
  tpm: Transmit | undefined

  constructor(
    readonly uefi: boolean,
    from?: Hardware,
  ) {
    this.disk = from ? from.disk.copy() : new SparseDisk(8 * gibibyte)
    this.firmware = new Map(from?.firmware)
    this.#contents = mkdtempSync(join(tmpdir(), 'ichor-disk-'))
    if (from) cpSync(from.#contents, this.#contents, { recursive: true })
  }

  /** Another machine of the same kind whose disk holds the same. */
  copy(): Hardware {
    return new Hardware(this.uefi, this)
  }

  /** Its power comes on: the kernel shows what there is below `root`. */
  async start(root: string): Promise<void> {
    this.#root = root
    this.#listeners.clear()
    this.partitions = []
    this.mappings.clear()
    await this.readTable()
    if (this.uefi) mkdirSync(join(root, 'sys/firmware/efi'), { recursive: true })
  }

  /** It is thrown away. */
  remove(): void {
    rmSync(this.#contents, { recursive: true })
  }

  /** The kernel maps an encrypted device; its table names the device by number. */
  map({ name, uuid, parameters, key }: CryptMapping): Mapped {
    if (this.mappings.has(name)) throw new SystemError('ioctl', 16, `"${name}"`)
    const [cipher = '', , , number = '', start = ''] = parameters.split(' ')
    if (cipher !== 'aes-xts-plain64') throw new SystemError('ioctl', 2, cipher)
    const under = `/dev/vda${number.split(':')[1]}`
    const device = `/dev/dm-${this.mappings.size}`
    const from = (this.#partition(under)?.offset ?? 0) + Number(start) * 512
    const [secret, disk] = [new Uint8Array(key), this.disk]
    this.mappings.set(name, {
      ...{ device, uuid, under },
      open: decrypting(this.open(under), device, secret, Number(start) * 512),
      head: () => aesXts('decrypt', secret, disk.read(from, 512)).subarray(0, 4),
    })
    this.#show()
    this.changed(device.slice('/dev/'.length))
    return { device, uuid }
  }

  /** The kernel removes a mapping. */
  unmap(name: string): boolean {
    const there = this.mappings.get(name)
    if (!there) return false
    this.mappings.delete(name)
    this.#show()
    this.changed(there.device.slice('/dev/'.length))
    return true
  }

  /** A device by its path. */
  open(path: string): OpenDevice {
    const mapped = this.#mapped(path)
    if (mapped) return mapped.open
    const partition = path === '/dev/vda' ? { offset: 0, size: this.disk.size } : this.#partition(path)
    if (!partition) throw new SystemError('open', 6, `"${path}"`) // ENXIO
    const { offset, size } = partition
    const inside = (at: number, length: number) => {
      if (at + length > size) throw new SystemError('read', 5, `"${path}"`)
      return offset + at
    }
    return {
      path,
      size,
      sectorSize: this.disk.sectorSize,
      read: async (at, length) => this.disk.read(inside(at, length), length),
      write: async (at, bytes) => this.disk.write(inside(at, bytes.length), bytes),
      flush: async () => {},
      close: async () => {},
    }
  }

  /** The kernel learns of partitions. It knows their names only from a table that it has read itself. */
  sync(wanted: Hardware['partitions']): void {
    const names = new Set([...this.partitions, ...wanted].map(({ index }) => `vda${index}`))
    this.partitions = [...wanted]
    this.#show()
    this.changed('vda', ...names)
  }

  /** The kernel reads the partition table by itself. */
  async readTable(): Promise<void> {
    const table = await readDiskTable(this.open('/dev/vda'))
    const { sectorSize } = this.disk
    this.sync(
      (table?.partitions ?? []).map(({ index, first, last, name }) => ({
        name,
        index,
        offset: first * sectorSize,
        size: (last + 1 - first) * sectorSize,
      })),
    )
  }

  /** The kernel announces devices. */
  changed(...names: string[]): void {
    for (const listener of this.#listeners) listener(names)
  }

  /** The uevents of the kernel, until the signal. */
  async *events(signal?: AbortSignal): AsyncGenerator<string[]> {
    const waiting: string[][] = []
    let wake = () => {}
    const listener = (names: string[]) => {
      waiting.push(names)
      wake()
    }
    this.#listeners.add(listener)
    const stop = () => wake()
    signal?.addEventListener('abort', stop, { once: true })
    try {
      while (!signal?.aborted) {
        yield* waiting.splice(0)
        const { promise, resolve } = Promise.withResolvers<void>()
        wake = resolve
        if (waiting.length === 0 && !signal?.aborted) await promise
      }
    } finally {
      this.#listeners.delete(listener)
    }
  }

  /** Makes a file system, as mkfs.xfs does: an empty one with its superblock. */
  async makeXfs(path: string, label: string): Promise<void> {
    const device = this.open(path)
    const block = Buffer.alloc(512)
    block.write('XFSB')
    block.writeUInt32BE(4096, 4)
    block.writeBigUInt64BE(BigInt(Math.floor(device.size / 4096)), 8)
    crypto.getRandomValues(block.subarray(32, 48))
    block.writeUInt16BE(512, 102)
    block.write(label.slice(0, 12), 108)
    await device.write(0, block)
    rmSync(this.#folder(path), { recursive: true, force: true })
    mkdirSync(this.#folder(path))
    this.changed(path.slice('/dev/'.length))
  }

  /** The folder of what a file system holds; ENOENT where there is none. */
  content(path: string): string {
    const mapped = this.#mapped(path)
    const head = mapped ? mapped.head() : this.disk.read(this.#partition(path)?.offset ?? 0, 4)
    if (Buffer.from(head).toString('latin1') !== 'XFSB') throw new SystemError('mount', 22, `"${path}"`)
    return this.#folder(path)
  }

  #folder(path: string): string {
    return join(this.#contents, String(this.#partition(this.#mapped(path)?.under ?? path)?.offset))
  }

  #mapped(path: string) {
    return [...this.mappings.values()].find(({ device }) => device === path)
  }

  #partition(path: string): KernelPartition | undefined {
    return this.partitions.find(({ index }) => path === `/dev/vda${index}`)
  }

  /** Writes what /sys shows. */
  #show(): void {
    const blocks = join(this.#root, 'sys/class/block')
    const folder = join(this.#root, 'sys', busPath)
    for (const path of [blocks, folder]) {
      rmSync(path, { recursive: true, force: true })
      mkdirSync(path, { recursive: true })
    }
    const show = (name: string, link: string, files: Record<string, string>) => {
      const at = join(this.#root, 'sys', link)
      for (const [file, text] of Object.entries(files)) {
        mkdirSync(join(at, file, '..'), { recursive: true })
        writeFileSync(join(at, file), `${text}\n`)
      }
      symlinkSync(`../../${link}`, join(blocks, name))
    }
    const { size, sectorSize } = this.disk
    show('vda', busPath, {
      uevent: 'MAJOR=253\nMINOR=0\nDEVNAME=vda\nDEVTYPE=disk\nDISKSEQ=1',
      size: String(size / 512),
      ro: '0',
      serial: 'S1',
      'queue/logical_block_size': String(sectorSize),
      'queue/rotational': '0',
    })
    for (const { device, open } of this.mappings.values()) {
      const name = device.slice('/dev/'.length)
      show(name, `devices/virtual/block/${name}`, {
        uevent: `MAJOR=254\nMINOR=${name.slice(3)}\nDEVNAME=${name}\nDEVTYPE=disk\nDISKSEQ=9`,
        size: String(open.size / 512),
        ro: '0',
        'queue/logical_block_size': '512',
      })
    }
    for (const { index, offset, size, name } of this.partitions)
      show(`vda${index}`, `${busPath}/vda${index}`, {
        uevent: `MAJOR=253\nMINOR=${index}\nDEVNAME=vda${index}\nDEVTYPE=partition\nDISKSEQ=1\nPARTN=${index}${name === undefined ? '' : `\nPARTNAME=${name}`}`,
        partition: String(index),
        start: String(offset / 512),
        size: String(size / 512),
      })
  }
}
