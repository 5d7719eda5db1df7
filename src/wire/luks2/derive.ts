/** Key derivation of LUKS2: Argon2 (RFC 9106) for key slots, PBKDF2 (RFC 8018) for the digest of the volume key. */
import nodeCrypto from 'node:crypto'

/** Cost of Argon2: passes, memory in KiB, lanes. */
export interface Cost {
  readonly time: number
  readonly memory: number
  readonly cpus: number
}

/** Variants of Argon2 that key slots use. */
export const argonTypes = ['argon2i', 'argon2id'] as const

type ArgonType = (typeof argonTypes)[number]

interface ArgonParameters {
  message: Uint8Array
  nonce: Uint8Array
  parallelism: number
  memory: number
  passes: number
  tagLength: number
}

// The runtime has it; its types do not yet. It runs on a thread of its own.
const runtime = nodeCrypto as unknown as {
  argon2(type: ArgonType, parameters: ArgonParameters, done: (error: Error | null, tag: Buffer) => void): void
}

/** Derives a key from a passphrase by Argon2. */
export function deriveKey(
  type: ArgonType,
  passphrase: Uint8Array,
  salt: Uint8Array,
  { time, memory, cpus }: Cost,
  length: number,
): Promise<Uint8Array> {
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>()
  runtime.argon2(type, { message: passphrase, nonce: salt, parallelism: cpus, memory, passes: time, tagLength: length }, (error, tag) =>
    error ? reject(error) : resolve(tag),
  )
  return promise
}

/** Derives a digest by PBKDF2. */
export function pbkdf2(
  secret: Uint8Array,
  salt: Uint8Array,
  iterations: number,
  length: number,
  hash: 'sha256' | 'sha512',
): Promise<Uint8Array> {
  const { promise, resolve, reject } = Promise.withResolvers<Uint8Array>()
  nodeCrypto.pbkdf2(secret, salt, iterations, length, hash, (error, digest) => (error ? reject(error) : resolve(digest)))
  return promise
}
