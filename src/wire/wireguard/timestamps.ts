/** Timestamps of handshakes (TAI64N, 12 bytes; WireGuard, section 5.1), each later than those before. */
export class Timestamps {
  #last = 0n

  /** The timestamp of a time in milliseconds since 1970; its low bits are dropped, which would show the time too exactly. */
  next(wallClock: number): Uint8Array {
    const nanoseconds = (BigInt(Math.floor(wallClock)) * 1_000_000n) & ~0xffffffn
    this.#last = nanoseconds > this.#last ? nanoseconds : this.#last + 1n
    const bytes = Buffer.alloc(12)
    bytes.writeBigUInt64BE(0x400000000000000an + this.#last / 1_000_000_000n, 0)
    bytes.writeUInt32BE(Number(this.#last % 1_000_000_000n), 8)
    return bytes
  }
}
