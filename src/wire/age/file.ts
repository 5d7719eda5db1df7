/** Files of the age format: a header with the encrypted file key, and the contents in authenticated chunks of 64 KiB. */
import { randomBytes } from 'node:crypto'
import { DecodeError } from '../decode-error.ts'
import { type ChachaKey, chachaKey, openWith, sealWith } from './chacha.ts'
import { derived, headerEnd, openHeader, writeHeader } from './header.ts'

const chunkLength = 64 << 10
const tagLength = 16
const nonceLength = 16

/** Encrypts a stream of bytes to recipients (32 bytes each). */
export async function* encrypt(chunks: AsyncIterable<Uint8Array>, recipients: readonly Uint8Array[]): AsyncGenerator<Uint8Array, void> {
  const fileKey = randomBytes(16)
  const nonce = randomBytes(nonceLength)
  yield await writeHeader(fileKey, recipients)
  yield nonce
  const key = await payloadKey(fileKey, nonce)
  for await (const { bytes, index, last } of pieces(chunks, chunkLength)) yield await sealWith(key, chunkNonce(index, last), bytes)
}

/** Decrypts a stream with any of these identities (32 bytes each). Throws DecodeError; what was yielded before is authentic. */
export async function* decrypt(chunks: AsyncIterable<Uint8Array>, identities: readonly Uint8Array[]): AsyncGenerator<Uint8Array, void> {
  const input = new Input(chunks)
  let end = headerEnd(input.held)
  for (; end === undefined; end = headerEnd(input.held))
    if (!(await input.more())) throw new DecodeError('age file', input.held.length, 'it is cut off in its header')
  const fileKey = await openHeader(input.take(end), identities)
  while (input.held.length < nonceLength)
    if (!(await input.more())) throw new DecodeError('age file', input.held.length, 'it is cut off behind its header')
  const key = await payloadKey(fileKey, input.take(nonceLength))
  for await (const { bytes, index, last } of pieces(input.rest(), chunkLength + tagLength)) {
    const opened = bytes.length < tagLength ? undefined : await openWith(key, chunkNonce(index, last), bytes)
    // Only a file without any contents ends with an empty chunk.
    if (!opened || (opened.length === 0 && index > 0)) throw new DecodeError('age file', index, 'it is damaged or cut off')
    yield opened
  }
}

const payloadKey = (fileKey: Uint8Array, nonce: Uint8Array): Promise<ChachaKey> => chachaKey(derived(fileKey, nonce, 'payload'))

/** A counter of 11 bytes, and whether the chunk is the last. */
function chunkNonce(index: number, last: boolean): Uint8Array {
  const nonce = Buffer.alloc(12)
  nonce.writeUIntBE(index, 5, 6)
  nonce[11] = last ? 1 : 0
  return nonce
}

/** A stream in pieces of one length; the last one may be shorter, and is empty only where nothing is there. */
async function* pieces(
  chunks: AsyncIterable<Uint8Array>,
  length: number,
): AsyncGenerator<{ bytes: Uint8Array; index: number; last: boolean }, void> {
  let held: Uint8Array[] = []
  let size = 0
  let index = 0
  for await (const chunk of chunks) {
    held.push(chunk)
    size += chunk.length
    if (size <= length) continue
    let all: Uint8Array = Buffer.concat(held)
    while (all.length > length) {
      yield { bytes: all.subarray(0, length), index: index++, last: false }
      all = all.subarray(length)
    }
    held = [all]
    size = all.length
  }
  yield { bytes: Buffer.concat(held), index, last: true }
}

/** A stream of which the beginning is held until it is complete. */
class Input {
  held: Uint8Array = new Uint8Array(0)
  readonly #chunks: AsyncIterator<Uint8Array>

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.#chunks = chunks[Symbol.asyncIterator]()
  }

  /** Holds one more chunk; false at the end. */
  async more(): Promise<boolean> {
    const next = await this.#chunks.next()
    if (next.done) return false
    this.held = Buffer.concat([this.held, next.value])
    return true
  }

  take(length: number): Uint8Array {
    const taken = this.held.subarray(0, length)
    this.held = this.held.subarray(length)
    return taken
  }

  async *rest(): AsyncGenerator<Uint8Array, void> {
    yield this.held
    for (let next = await this.#chunks.next(); !next.done; next = await this.#chunks.next()) yield next.value
  }
}
