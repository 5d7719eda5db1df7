/** ChaCha20-Poly1305 (RFC 8439) of OpenSSL, in place, for one key and counters as nonces: what moves packets has no time for more. */
import { dlopen, type Pointer, ptr } from 'bun:ffi'

const soname = 'libcrypto.so.3'
/** Commands of EVP_CIPHER_CTX_ctrl(3). */
const getTag = 0x10
const setTag = 0x11
const tagLength = 16

function bindLibrary() {
  return dlopen(soname, {
    EVP_CIPHER_CTX_new: { args: [], returns: 'ptr' },
    EVP_CIPHER_CTX_free: { args: ['ptr'], returns: 'void' },
    EVP_CIPHER_CTX_ctrl: { args: ['ptr', 'i32', 'i32', 'ptr'], returns: 'i32' },
    EVP_chacha20_poly1305: { args: [], returns: 'ptr' },
    EVP_CipherInit_ex: { args: ['ptr', 'ptr', 'ptr', 'ptr', 'ptr', 'i32'], returns: 'i32' },
    EVP_CipherUpdate: { args: ['ptr', 'ptr', 'ptr', 'ptr', 'i32'], returns: 'i32' },
    EVP_CipherFinal_ex: { args: ['ptr', 'ptr', 'ptr'], returns: 'i32' },
  }).symbols
}

let bound: ReturnType<typeof bindLibrary> | undefined
function library(): ReturnType<typeof bindLibrary> {
  bound ??= bindLibrary()
  return bound
}

const nonce = new Uint32Array(3)
const written = new Int32Array(1)
const spare = Buffer.alloc(tagLength)

/** A key of 32 bytes. The nonce of a message is 32 zero bits and its counter of 64 bits (WireGuard, section 5.4.6). */
export class PacketCipher {
  readonly #lib = library()
  readonly #context: Pointer

  constructor(key: Uint8Array) {
    const context = this.#lib.EVP_CIPHER_CTX_new()
    if (!context || this.#lib.EVP_CipherInit_ex(context, this.#lib.EVP_chacha20_poly1305(), null, key, null, 1) !== 1)
      throw new Error('OpenSSL has no ChaCha20-Poly1305')
    this.#context = context as Pointer
  }

  /** Encrypts `length` bytes at an offset and writes the tag behind them. */
  seal(counter: number, buffer: Uint8Array, at: number, length: number): void {
    const data = ptr(buffer, at)
    this.#start(counter, 1)
    const done =
      this.#update(data, length) &&
      this.#lib.EVP_CipherFinal_ex(this.#context, spare, written) === 1 &&
      this.#lib.EVP_CIPHER_CTX_ctrl(this.#context, getTag, tagLength, (data + length) as Pointer) === 1
    if (!done) throw new Error('OpenSSL could not encrypt a packet')
  }

  /** Decrypts `length` bytes, of which the last 16 are the tag; false when they are not authentic. */
  open(counter: number, buffer: Uint8Array, at: number, length: number): boolean {
    const data = ptr(buffer, at)
    const plain = length - tagLength
    this.#start(counter, 0)
    return (
      this.#update(data, plain) &&
      this.#lib.EVP_CIPHER_CTX_ctrl(this.#context, setTag, tagLength, (data + plain) as Pointer) === 1 &&
      this.#lib.EVP_CipherFinal_ex(this.#context, spare, written) === 1
    )
  }

  #start(counter: number, encrypt: 0 | 1): void {
    nonce[1] = counter >>> 0
    nonce[2] = Math.floor(counter / 2 ** 32)
    if (this.#lib.EVP_CipherInit_ex(this.#context, null, null, null, nonce, encrypt) !== 1) throw new Error('OpenSSL refused a nonce')
  }

  #update(data: Pointer, length: number): boolean {
    return length === 0 || this.#lib.EVP_CipherUpdate(this.#context, data, written, data, length) === 1
  }

  /** Frees the key. */
  close(): void {
    this.#lib.EVP_CIPHER_CTX_free(this.#context)
  }
}
