/** Key slots: each holds the volume key, sealed with a passphrase. */
import { randomBytes, timingSafeEqual } from 'node:crypto'
import type { WriteStep } from '../gpt/table.ts'
import { type Cost, deriveKey, pbkdf2 } from './derive.ts'
import { changed, type Header, type Read, writeHeader } from './header.ts'
import { areaOf, type Extent, type Keyslot, type Metadata, mostSlots, sealedSize, stripes, type Token } from './metadata.ts'
import { merge, split } from './split.ts'
import { aesXts } from './xts.ts'

/** Areas begin and end at multiples of this many bytes. */
const alignment = 4096
/** Cipher and key size of the areas that are written here. */
const areaCipher = { encryption: 'aes-xts-plain64', key_size: 64 } as const

/** A key slot cannot be used or changed. */
export class KeySlotError extends Error {
  override name = 'KeySlotError'
}

/** A changed header and the writes that lead to it, each step flushed before the next. */
export interface Change {
  readonly header: Header
  readonly steps: readonly WriteStep[]
}

/** Opens a key slot. Resolves to the volume key, undefined if the passphrase is not that of the slot. */
export async function openSlot(metadata: Metadata, slot: number, passphrase: Uint8Array, read: Read): Promise<Uint8Array | undefined> {
  const keyslot = metadata.keyslots[slot]
  if (!keyslot) return undefined
  const { encryption, key_size: areaKeySize } = keyslot.area
  if (encryption !== 'aes-xts-plain64')
    throw new KeySlotError(
      `key slot ${slot} is itself encrypted with ${encryption}, which is not supported: add it again with another cipher`,
    )
  const { type, time, memory, cpus, salt } = keyslot.kdf
  const key = await deriveKey(type, passphrase, Buffer.from(salt, 'base64'), { time, memory, cpus }, areaKeySize)
  const sealed = await read(areaOf(keyslot).offset, sealedSize(keyslot.key_size))
  const candidate = merge(aesXts('decrypt', key, sealed), keyslot.key_size, stripes, keyslot.af.hash)
  return (await isVolumeKey(metadata, slot, candidate)) ? candidate : undefined
}

async function isVolumeKey({ digests: { 0: digest } }: Metadata, slot: number, candidate: Uint8Array): Promise<boolean> {
  if (!digest.keyslots.includes(String(slot))) return false
  const expected = Buffer.from(digest.digest, 'base64')
  const salt = Buffer.from(digest.salt, 'base64')
  return timingSafeEqual(await pbkdf2(candidate, salt, digest.iterations, expected.length, digest.hash), expected)
}

/** A key to add. */
export interface NewKey {
  readonly slot: number
  readonly passphrase: Uint8Array
  readonly cost: Cost
  /** Kept beside the key, under the number of its slot. */
  readonly token?: Token | undefined
}

/**
 * Adds a key. One that is in the slot already moves to a free slot, where it works until it is removed, so that there is no
 * moment without it. Throws KeySlotError where there is no space.
 */
export async function addSlot(header: Header, volumeKey: Uint8Array, { slot, passphrase, cost, token }: NewKey): Promise<Change> {
  const { metadata } = header
  if (slot < 0 || slot >= mostSlots) throw new KeySlotError(`there is no key slot ${slot}`)
  const { keyslot, sealed } = await seal(volumeKey, passphrase, cost, freeExtent(header, volumeKey.length))
  const before = metadata.keyslots[slot]
  const moved = before && freeSlot(metadata)
  const { [slot]: oldToken, ...otherTokens } = metadata.tokens
  const [digest] = [metadata.digests[0]]
  const next = changed(header, {
    ...metadata,
    keyslots: { ...metadata.keyslots, [slot]: keyslot, ...(moved !== undefined && { [moved]: before }) },
    tokens: {
      ...otherTokens,
      ...(token && { [slot]: token }),
      ...(moved !== undefined && oldToken && { [moved]: oldToken }),
    },
    digests: { 0: { ...digest, keyslots: slotsOf(digest.keyslots, [slot, ...(moved === undefined ? [] : [moved])]) } },
  })
  return { header: next, steps: [[{ offset: areaOf(keyslot).offset, bytes: sealed }], ...writeHeader(next)] }
}

/** Seals a volume key for an area. */
export async function seal(
  volumeKey: Uint8Array,
  passphrase: Uint8Array,
  cost: Cost,
  { offset, size }: Extent,
): Promise<{ keyslot: Keyslot; sealed: Uint8Array }> {
  const salt = randomBytes(32)
  const key = await deriveKey('argon2id', passphrase, salt, cost, areaCipher.key_size)
  const spread = new Uint8Array(sealedSize(volumeKey.length))
  spread.set(split(volumeKey, stripes, 'sha256'))
  return {
    keyslot: {
      type: 'luks2',
      key_size: volumeKey.length,
      af: { type: 'luks1', stripes, hash: 'sha256' },
      area: { type: 'raw', offset: String(offset), size: String(size), ...areaCipher },
      kdf: { type: 'argon2id', ...cost, salt: salt.toString('base64') },
    },
    sealed: aesXts('encrypt', key, spread),
  }
}

/** Bytes of the area of a key. */
export const areaSize = (keySize: number): number => Math.ceil((keySize * stripes) / alignment) * alignment

const slotsOf = (slots: readonly string[], more: readonly number[]): string[] =>
  [...new Set([...slots, ...more.map(String)])].sort((a, b) => Number(a) - Number(b))

/** The free slot with the highest number: configurations use the low ones. Throws KeySlotError. */
export function freeSlot({ keyslots, tokens }: Metadata): number {
  for (let slot = mostSlots - 1; slot >= 0; slot--) if (!keyslots[slot] && !tokens[slot]) return slot
  throw new KeySlotError('all key slots are in use')
}

/** The first free area. */
function freeExtent({ size: headerSize, metadata }: Header, keySize: number): Extent {
  const size = areaSize(keySize)
  const end = 2 * headerSize + Number(metadata.config.keyslots_size)
  const used = Object.values(metadata.keyslots)
    .map(areaOf)
    .sort((a, b) => a.offset - b.offset)
  let offset = 2 * headerSize
  for (const area of used) {
    if (area.offset - offset >= size) break
    offset = Math.ceil((area.offset + area.size) / alignment) * alignment
  }
  if (offset + size > end) throw new KeySlotError('the header has no space for another key')
  return { offset, size }
}

/**
 * Removes a key: its sealed form is overwritten first, so that no power cut leaves it on the disk unnoticed. Throws
 * KeySlotError for the last one.
 */
export function removeSlot(header: Header, slot: number): Change {
  const { metadata } = header
  const { [slot]: removed, ...keyslots } = metadata.keyslots
  if (!removed) throw new KeySlotError(`key slot ${slot} is not in use`)
  if (Object.keys(keyslots).length === 0) throw new KeySlotError(`key slot ${slot} holds the last key of the volume`)
  const { [slot]: _, ...tokens } = metadata.tokens
  const [digest] = [metadata.digests[0]]
  const next = changed(header, {
    ...metadata,
    keyslots,
    tokens,
    digests: { 0: { ...digest, keyslots: digest.keyslots.filter((each) => each !== String(slot)) } },
  })
  const { offset, size } = areaOf(removed)
  return { header: next, steps: [[{ offset, bytes: new Uint8Array(randomBytes(size)) }], ...writeHeader(next)] }
}
