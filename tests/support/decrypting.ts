import type { OpenDevice } from '../../src/linux/block/device.ts'
import { aesXts } from '../../src/wire/luks2/xts.ts'

const sector = 512

/** What dm-crypt shows of a device: its content from `start` on, decrypted by AES-XTS in sectors of 512 bytes. */
export function decrypting(under: OpenDevice, path: string, key: Uint8Array, start: number): OpenDevice {
  const size = under.size - start
  const around = (offset: number, length: number) => {
    const first = Math.floor(offset / sector)
    return { first, from: offset - first * sector, length: Math.ceil((offset + length) / sector) * sector - first * sector }
  }
  const sectors = async (first: number, length: number) => aesXts('decrypt', key, await under.read(start + first * sector, length), first)
  return {
    path,
    size,
    sectorSize: sector,
    async read(offset, length) {
      const { first, from, length: whole } = around(offset, length)
      return (await sectors(first, whole)).slice(from, from + length)
    },
    async write(offset, bytes) {
      const { first, from, length } = around(offset, bytes.length)
      const plain = await sectors(first, length)
      plain.set(bytes, from)
      await under.write(start + first * sector, aesXts('encrypt', key, plain, first))
    },
    flush: () => under.flush(),
    close: async () => {},
  }
}
