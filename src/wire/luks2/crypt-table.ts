/** The table of the kernel's dm-crypt target (Documentation/admin-guide/device-mapper/dm-crypt.rst) for a volume. */
import { DecodeError } from '../decode-error.ts'
import type { Header } from './header.ts'

/** Options that change how the kernel schedules encryption, by their names in the configuration. */
export const performanceOptions: readonly string[] = ['no_read_workqueue', 'no_write_workqueue', 'same_cpu_crypt']

/** A mapping: length in sectors of 512 bytes, and the parameters of the target. */
export interface CryptTable {
  readonly sectors: number
  readonly parameters: string
}

/** The mapping of a volume on a device, whose number is `major:minor`. `key` names the key in the kernel's keyring. Throws DecodeError for a device too small. */
export function cryptTable(
  { metadata }: Pick<Header, 'metadata'>,
  device: { number: string; size: number },
  key: string,
  options: readonly string[] = [],
): CryptTable {
  const { offset, size, encryption, sector_size: sectorSize } = metadata.segments[0]
  const start = Number(offset)
  const available = Math.floor((device.size - start) / sectorSize) * sectorSize
  const length = size === 'dynamic' ? available : Number(size)
  if (length <= 0 || length > available || length % sectorSize !== 0)
    throw new DecodeError('LUKS2 segment', start, `a device of ${device.size} bytes does not hold it`)
  const all = [...options, ...(sectorSize === 512 ? [] : [`sector_size:${sectorSize}`])]
  const optional = all.length > 0 ? ` ${all.length} ${all.join(' ')}` : ''
  return {
    sectors: length / 512,
    parameters: `${encryption} ${key} 0 ${device.number} ${start / 512}${optional}`,
  }
}
