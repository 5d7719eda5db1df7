/** The header of an age file: the file key, encrypted to each recipient, and a MAC of all of it. */
import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'
import { DecodeError } from '../decode-error.ts'
import { newExchange, publicKeyOf, sharedSecret } from '../x509/x25519.ts'
import { open, seal } from './chacha.ts'

const version = 'age-encryption.org/v1'
const columns = 64
const fileKeyLength = 16
const tagLength = 16
const shareLength = 32
/** Bytes in which a header must end. */
export const longestHeader = 64 << 10
const noNonce = new Uint8Array(12)

/** HKDF with SHA-256 (RFC 5869), 32 bytes. */
export const derived = (secret: Uint8Array, salt: Uint8Array, info: string): Uint8Array =>
  new Uint8Array(hkdfSync('sha256', secret, salt, info, 32))

/** One encryption of the file key. */
interface Stanza {
  readonly args: readonly string[]
  readonly body: Uint8Array
}

/** The header of a file whose key is encrypted to these recipients (32 bytes each). */
export async function writeHeader(fileKey: Uint8Array, recipients: readonly Uint8Array[]): Promise<Uint8Array> {
  if (recipients.length === 0) throw new Error('encrypt: there is no recipient')
  const stanzas = await Promise.all(recipients.map((recipient) => wrapped(fileKey, recipient)))
  const text = `${version}\n${stanzas.map(stanzaText).join('')}---`
  return Buffer.from(`${text} ${unpadded(macOf(fileKey, Buffer.from(text)))}\n`)
}

/** The file key, if one of the identities (32 bytes each) can decrypt it. Throws DecodeError otherwise. */
export async function openHeader(header: Uint8Array, identities: readonly Uint8Array[]): Promise<Uint8Array> {
  const { stanzas, signed, mac } = parseHeader(header)
  for (const { args, body } of stanzas) {
    if (args[0] !== 'X25519') continue
    const share = bytesOf(args[1] ?? '')
    if (args.length !== 2 || share.length !== shareLength || body.length !== fileKeyLength + tagLength)
      throw new DecodeError('age header', 0, 'a recipient that is not one')
    for (const identity of identities) {
      const fileKey = await unwrapped(identity, share, body)
      if (!fileKey) continue
      if (!timingSafeEqual(macOf(fileKey, signed), mac)) throw new DecodeError('age header', 0, 'it was changed: its MAC is wrong')
      return fileKey
    }
  }
  throw new DecodeError('age file', 0, 'it is encrypted to others: none of the identities can decrypt it')
}

/** Where the header of a file ends; undefined while its end is not there. */
export function headerEnd(start: Uint8Array): number | undefined {
  const bytes = Buffer.from(start.buffer, start.byteOffset, start.length)
  const known = bytes.subarray(0, version.length).toString('latin1')
  if (!version.startsWith(known)) throw new DecodeError('age file', 0, 'it is not encrypted with age')
  const last = bytes.indexOf('\n--- ')
  const end = last < 0 ? -1 : bytes.indexOf('\n', last + 1)
  if (end >= 0 && end < longestHeader) return end + 1
  if (bytes.length >= longestHeader) throw new DecodeError('age header', longestHeader, 'it does not end')
  return undefined
}

/** Reads a whole header without any key. Throws DecodeError. */
export function parseHeader(header: Uint8Array): { stanzas: Stanza[]; signed: Uint8Array; mac: Uint8Array } {
  const lines = Buffer.from(header).toString('latin1').split('\n')
  const fail = (at: number, detail: string) => new DecodeError('age header', at, detail)
  if (lines[0] !== version) throw fail(0, 'it is not encrypted with age')
  const stanzas: Stanza[] = []
  let at = 1
  while (lines[at]?.startsWith('-> ')) {
    const args = (lines[at++] ?? '').slice(3).split(' ')
    const body: string[] = []
    // A line that is not full ends a body, and may be empty.
    for (let full = true; full; at++) {
      const line = lines[at]
      if (line === undefined || line.length > columns) throw fail(at, 'a recipient without an end')
      body.push(line)
      full = line.length === columns
    }
    stanzas.push({ args, body: bytesOf(body.join('')) })
  }
  const end = lines[at] ?? ''
  if (stanzas.length === 0 || !end.startsWith('--- ') || lines.length !== at + 2 || lines[at + 1] !== '')
    throw fail(at, 'recipients and a MAC are expected')
  const mac = bytesOf(end.slice(4))
  if (mac.length !== 32) throw fail(at, 'its MAC is not one')
  return { stanzas, signed: header.subarray(0, header.length - end.length - 1 + 3), mac }
}

async function wrapped(fileKey: Uint8Array, recipient: Uint8Array): Promise<Stanza> {
  const { publicKey: share, secretWith } = newExchange()
  const key = wrapKey(secretWith(recipient), share, recipient)
  return { args: ['X25519', unpadded(share)], body: await seal(key, noNonce, fileKey) }
}

async function unwrapped(identity: Uint8Array, share: Uint8Array, body: Uint8Array): Promise<Uint8Array | undefined> {
  let secret: Uint8Array
  try {
    secret = sharedSecret(identity, share)
  } catch {
    throw new DecodeError('age header', 0, 'a recipient with a share that is not a key')
  }
  return open(wrapKey(secret, share, publicKeyOf(identity)), noNonce, body)
}

const wrapKey = (secret: Uint8Array, share: Uint8Array, recipient: Uint8Array) =>
  derived(secret, Buffer.concat([share, recipient]), `${version}/X25519`)

const macOf = (fileKey: Uint8Array, signed: Uint8Array): Buffer =>
  createHmac('sha256', derived(fileKey, new Uint8Array(0), 'header'))
    .update(signed)
    .digest()

function stanzaText({ args, body }: Stanza): string {
  const text = unpadded(body)
  const lines = Array.from({ length: Math.floor(text.length / columns) + 1 }, (_, i) => text.slice(i * columns, (i + 1) * columns))
  return `-> ${args.join(' ')}\n${lines.join('\n')}\n`
}

const unpadded = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64').replace(/=+$/, '')

/** Canonical base64 without padding. */
function bytesOf(text: string): Uint8Array {
  const bytes = Buffer.from(text, 'base64')
  if (unpadded(bytes) !== text) throw new DecodeError('age header', 0, 'text that is not base64 without padding')
  return bytes
}
