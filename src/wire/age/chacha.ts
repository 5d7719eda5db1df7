/** ChaCha20-Poly1305 (RFC 8439) of the runtime. */

const algorithm = 'ChaCha20-Poly1305'

/** A key that is ready to be used. */
export type ChachaKey = CryptoKey

// The runtime follows the draft "Modern Algorithms in the Web Cryptography API", which its types do not have yet.
const importRaw = crypto.subtle.importKey.bind(crypto.subtle) as unknown as (
  format: 'raw-secret',
  key: Uint8Array,
  algorithm: string,
  extractable: false,
  usages: readonly string[],
) => Promise<CryptoKey>

/** Prepares a key of 32 bytes. */
export const chachaKey = (key: Uint8Array): Promise<ChachaKey> => importRaw('raw-secret', key, algorithm, false, ['encrypt', 'decrypt'])

/** Encrypts with a nonce of 12 bytes; the tag of 16 bytes is at the end. */
export async function sealWith(key: ChachaKey, nonce: Uint8Array, bytes: Uint8Array): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.encrypt(parameters(nonce), key, new Uint8Array(bytes)))
}

/** Decrypts; undefined when the key is another or the bytes were changed. */
export async function openWith(key: ChachaKey, nonce: Uint8Array, bytes: Uint8Array): Promise<Uint8Array | undefined> {
  try {
    return new Uint8Array(await crypto.subtle.decrypt(parameters(nonce), key, new Uint8Array(bytes)))
  } catch (error) {
    if (error instanceof DOMException && error.name === 'OperationError') return undefined
    throw error
  }
}

/** As sealWith, with a key that is used once. */
export const seal = async (key: Uint8Array, nonce: Uint8Array, bytes: Uint8Array): Promise<Uint8Array> =>
  sealWith(await chachaKey(key), nonce, bytes)

/** As openWith, with a key that is used once. */
export const open = async (key: Uint8Array, nonce: Uint8Array, bytes: Uint8Array): Promise<Uint8Array | undefined> =>
  openWith(await chachaKey(key), nonce, bytes)

const parameters = (nonce: Uint8Array) => ({ name: algorithm, iv: new Uint8Array(nonce) })
