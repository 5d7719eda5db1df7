/** How a new volume is encrypted: the configuration's settings, and what the machine and its disk suggest for the others. */
import { type Cipher, ciphers, sectorSizes } from '../../../wire/luks2/metadata.ts'
import { parseMeminfo } from '../../../wire/proc/memory.ts'
import type { Kernel } from '../../kernel.ts'
import { withDevice } from '../device.ts'
import type { Capacity } from './cost.ts'
import type { Encryption } from './passphrase.ts'

type SectorSize = (typeof sectorSizes)[number]

/** Cipher, key size in bytes and sector size of a new volume. Throws for what the kernel would not take. */
export async function formatOf(
  kernel: Pick<Kernel, 'block' | 'files'>,
  path: string,
  { cipher = 'aes-xts-plain64', keySize, blockSize }: Pick<Encryption, 'cipher' | 'keySize' | 'blockSize'>,
): Promise<{ cipher: Cipher; keySize: number; sectorSize: SectorSize }> {
  if (!isCipher(cipher)) throw new Error(`there is no cipher "${cipher}"`)
  const sizes: readonly number[] = ciphers[cipher]
  const bytes = keySize === undefined ? sizes[0] : keySize / 8
  if (bytes === undefined || !sizes.includes(bytes)) throw new Error(`${cipher} has no keys of ${keySize} bits`)
  const smallest = await withDevice(kernel.block, path, {}, async ({ sectorSize }) => sectorSize)
  const sectorSize = sectorSizes.find((size) => size === (blockSize ?? physicalSize(kernel, path, smallest)))
  if (!sectorSize || sectorSize < smallest) throw new Error(`"${path}" cannot be encrypted in blocks of ${blockSize} bytes`)
  return { cipher, keySize: bytes, sectorSize }
}

const isCipher = (name: string): name is Cipher => name in ciphers

/** 4096 on a disk that works in sectors of 4 KiB inside, else that of the disk. */
function physicalSize({ files }: Pick<Kernel, 'files'>, path: string, logical: number): SectorSize {
  const folder = `/sys/class/block/${path.replace('/dev/', '').replaceAll('/', '!')}`
  const text =
    files.readTextIfThere(`${folder}/queue/physical_block_size`) ?? files.readTextIfThere(`${folder}/../queue/physical_block_size`)
  return Number(text ?? logical) >= 4096 || logical === 4096 ? 4096 : 512
}

/** What key derivation may use of this machine. */
export function capacityOf({ files }: Pick<Kernel, 'files'>): Capacity {
  const { memtotal } = parseMeminfo(files.readTextIfThere('/proc/meminfo') ?? '')
  return { memory: memtotal === undefined ? undefined : memtotal * 1024, processors: navigator.hardwareConcurrency }
}
