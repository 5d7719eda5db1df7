/** DNS over TCP: two bytes of length before each message (RFC 1035 §4.2.2). */

/** Prefixes a message with its length. */
export function withLength(message: Uint8Array): Buffer {
  const framed = Buffer.alloc(message.length + 2)
  framed.writeUInt16BE(message.length, 0)
  framed.set(message, 2)
  return framed
}

/** Splits a stream into messages. Buffers at most one message and the bytes received after it. */
export class LengthReader {
  #held = Buffer.alloc(0)
  constructor(readonly message: (bytes: Buffer) => void) {}

  push(chunk: Buffer): void {
    this.#held = this.#held.length === 0 ? Buffer.from(chunk) : Buffer.concat([this.#held, chunk])
    while (this.#held.length >= 2) {
      const length = this.#held.readUInt16BE(0)
      if (this.#held.length < 2 + length) return
      const message = Buffer.from(this.#held.subarray(2, 2 + length))
      this.#held = this.#held.subarray(2 + length)
      this.message(message)
    }
  }
}
