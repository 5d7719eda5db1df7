import { randomBytes } from 'node:crypto'
import type { WriteStep } from '../gpt/table.ts'
import { pbkdf2 } from './derive.ts'
import { type Header, headerSizes, writeHeader } from './header.ts'
import { areaSize, type Change, type NewKey, seal } from './key-slots.ts'
import type { Cipher, Metadata, sectorSizes } from './metadata.ts'

/** Bytes before the data: headers and key slots. */
export const dataOffset = 16 << 20

/** How a volume is encrypted. */
export interface Encryption {
  readonly cipher: Cipher
  /** Bytes. */
  readonly keySize: number
  readonly sectorSize: (typeof sectorSizes)[number]
}

/**
 * The minimum of the specification: PBKDF2 protects nothing here, since it is the digest of a random key, which nobody can guess,
 * and each try of a passphrase waits for it.
 */
const digestIterations = 1000

/** Creates the header of a new volume with a random volume key, and its first key slot. */
export async function newVolume(
  { cipher, keySize, sectorSize }: Encryption,
  { slot, passphrase, cost, token }: NewKey,
): Promise<Change & { volumeKey: Uint8Array }> {
  const [size = 0] = headerSizes
  const volumeKey = new Uint8Array(randomBytes(keySize))
  const salt = randomBytes(32)
  const digest = await pbkdf2(volumeKey, salt, digestIterations, 32, 'sha256')
  const { keyslot, sealed } = await seal(volumeKey, passphrase, cost, { offset: 2 * size, size: areaSize(keySize) })
  const metadata: Metadata = {
    keyslots: { [slot]: keyslot },
    tokens: token ? { [slot]: token } : {},
    segments: {
      0: { type: 'crypt', offset: String(dataOffset), size: 'dynamic', iv_tweak: '0', encryption: cipher, sector_size: sectorSize },
    },
    digests: {
      0: {
        type: 'pbkdf2',
        keyslots: [String(slot)],
        segments: ['0'],
        salt: salt.toString('base64'),
        digest: Buffer.from(digest).toString('base64'),
        hash: 'sha256',
        iterations: digestIterations,
      },
    },
    config: { json_size: String(size - 4096), keyslots_size: String(dataOffset - 2 * size) },
  }
  const header: Header = { size, sequence: 1n, uuid: crypto.randomUUID(), label: '', subsystem: '', metadata }
  return { header, volumeKey, steps: [...cleared(), [{ offset: Number(keyslot.area.offset), bytes: sealed }], ...writeHeader(header)] }
}

/** Overwrites what was in the place of headers and key slots, the signature first. */
function cleared(): WriteStep[] {
  return [[{ offset: 0, bytes: new Uint8Array(4096) }], [{ offset: 0, bytes: new Uint8Array(dataOffset) }]]
}
