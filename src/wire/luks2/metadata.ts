/**
 * The JSON metadata of LUKS2 (LUKS2 On-Disk Format Specification 1.1.1, 3). A disk may come from anybody, so only what this
 * system would write itself is accepted: one encrypted segment, key slots protected by Argon2, known ciphers, bounded costs.
 */
import * as v from 'valibot'
import { DecodeError } from '../decode-error.ts'
import { argonTypes } from './derive.ts'
import { splitHashes } from './split.ts'

/** What encrypts volumes. A release declares it, so that no node goes back to one that would not open its disks. */
export const encryptionProviders = ['luks2'] as const

/** Ciphers by their name in dm-crypt, with the sizes of their keys in bytes; the first is the default. */
export const ciphers = {
  'aes-xts-plain64': [64, 32],
  'xchacha12,aes-adiantum-plain64': [32],
  'xchacha20,aes-adiantum-plain64': [32],
} as const satisfies Record<string, readonly number[]>

/** A cipher. */
export type Cipher = keyof typeof ciphers

/** Sizes of an encrypted sector in bytes. */
export const sectorSizes = [512, 1024, 2048, 4096] as const

/** Highest number of key slots and tokens. */
export const mostSlots = 32

/** Number of stripes of every key. */
export const stripes = 4000

/** Bounds of Argon2: 4 GiB as in the specification, and 64 GiB-passes, which take a slow machine a minute. */
const mostMemory = 4 << 20
const mostWork = 64 << 20
/** Bounds of PBKDF2 for the digest: more than any benchmark of a second yields, and still seconds. */
const mostIterations = 100_000_000

const number = (least: number, most: number) => v.pipe(v.number(), v.integer(), v.minValue(least), v.maxValue(most))
/** Offsets and sizes are decimal strings. */
const decimal = v.pipe(v.string(), v.regex(/^\d{1,15}$/))
const base64 = (least: number, most: number) =>
  v.pipe(
    v.string(),
    v.maxLength(most * 2),
    v.check((text) => {
      const bytes = Buffer.from(text, 'base64')
      return bytes.length >= least && bytes.length <= most && bytes.toString('base64') === text
    }, 'no base64 of an accepted length'),
  )
const cipher = v.picklist(Object.keys(ciphers) as [Cipher, ...Cipher[]])
const hash = v.picklist(Object.keys(splitHashes) as [keyof typeof splitHashes])
const id = v.pipe(v.string(), v.regex(/^(0|[1-9]\d{0,2})$/))

const keyslot = v.looseObject({
  type: v.literal('luks2'),
  key_size: number(16, 64),
  af: v.looseObject({ type: v.literal('luks1'), stripes: v.literal(stripes), hash }),
  area: v.looseObject({ type: v.literal('raw'), offset: decimal, size: decimal, encryption: cipher, key_size: number(16, 64) }),
  kdf: v.pipe(
    v.looseObject({
      type: v.picklist(argonTypes),
      time: number(1, mostWork),
      memory: number(8, mostMemory),
      cpus: number(1, 4),
      salt: base64(16, 64),
    }),
    v.check(({ time, memory }) => time * memory <= mostWork, 'it costs too much'),
  ),
})

const token = v.looseObject({ type: v.pipe(v.string(), v.maxLength(128)), keyslots: v.pipe(v.array(id), v.maxLength(mostSlots)) })

const segment = v.looseObject({
  type: v.literal('crypt'),
  offset: decimal,
  size: v.union([v.literal('dynamic'), decimal]),
  iv_tweak: v.literal('0'),
  encryption: cipher,
  sector_size: v.picklist(sectorSizes),
  integrity: v.optional(v.undefined()),
  flags: v.optional(v.pipe(v.array(v.string()), v.maxLength(0))),
})

const digest = v.looseObject({
  type: v.literal('pbkdf2'),
  keyslots: v.pipe(v.array(id), v.maxLength(mostSlots + 1)),
  segments: v.strictTuple([v.literal('0')]),
  hash,
  iterations: number(1000, mostIterations),
  salt: base64(16, 64),
  digest: base64(20, 64),
})

const metadata = v.looseObject({
  keyslots: v.pipe(v.record(id, keyslot), v.minEntries(1), v.maxEntries(mostSlots)),
  tokens: v.pipe(v.record(id, token), v.maxEntries(mostSlots)),
  segments: v.strictObject({ 0: segment }),
  digests: v.strictObject({ 0: digest }),
  config: v.looseObject({
    json_size: decimal,
    keyslots_size: decimal,
    flags: v.optional(v.pipe(v.array(v.string()), v.maxLength(0))),
    requirements: v.optional(v.looseObject({ mandatory: v.optional(v.pipe(v.array(v.string()), v.maxLength(0))) })),
  }),
})

/** The metadata of a volume. Objects keep keys that this system does not know. */
export type Metadata = v.InferOutput<typeof metadata>
/** A key slot. */
export type Keyslot = v.InferOutput<typeof keyslot>
/** A token: what belongs to a key slot besides its key. */
export type Token = v.InferOutput<typeof token>

/** A part of the device in bytes. */
export interface Extent {
  readonly offset: number
  readonly size: number
}

/** Where the sealed key of a slot is. */
export const areaOf = ({ area }: Keyslot): Extent => ({ offset: Number(area.offset), size: Number(area.size) })

/** Parses the metadata of a header of `headerSize` bytes, and checks that its parts do not overlap. Throws DecodeError. */
export function parseMetadata(text: string, headerSize: number): Metadata {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new DecodeError('LUKS2 metadata', 0, 'no JSON')
  }
  const { success, output, issues } = v.safeParse(metadata, value)
  if (!success) {
    const [issue] = issues
    throw new DecodeError('LUKS2 metadata', 0, `${v.getDotPath(issue) ?? 'all of it'}: ${issue.message.slice(0, 200)}`)
  }
  checkPlaces(output, headerSize)
  return output
}

/** The key slots lie between the two headers and the data, each in an area of its own that holds all of its stripes. */
function checkPlaces({ keyslots, segments, digests, config }: Metadata, headerSize: number): void {
  const fail = (what: string): never => {
    throw new DecodeError('LUKS2 metadata', 0, what)
  }
  const [first, end] = [2 * headerSize, 2 * headerSize + Number(config.keyslots_size)]
  if (end > Number(segments[0].offset)) fail('the key slots reach into the data')
  if (Number(segments[0].offset) % 512 !== 0) fail('the data does not begin at a sector')
  let free = first
  const sorted = Object.entries(keyslots).sort(([, a], [, b]) => areaOf(a).offset - areaOf(b).offset)
  for (const [slot, { key_size: size, area }] of sorted) {
    const offset = Number(area.offset)
    if (offset < free || offset + Number(area.size) > end || offset % 512 !== 0) fail(`the area of key slot ${slot} is out of place`)
    if (Number(area.size) < sealedSize(size)) fail(`the area of key slot ${slot} is too small`)
    free = offset + Number(area.size)
  }
  for (const slot of digests[0].keyslots) if (!keyslots[slot]) fail(`the digest names key slot ${slot}, which does not exist`)
}

/** Bytes of a sealed key: its stripes, in whole sectors. */
export const sealedSize = (keySize: number): number => Math.ceil((keySize * stripes) / 512) * 512
