/** Headers of many datagrams for recvmmsg(2) and sendmmsg(2): each has one address, one vector and one control message. */
import { type Pointer, ptr } from 'bun:ffi'

/** Messages of a batch. */
export const batchLength = 64
/** Length of an address in bytes: struct sockaddr_in6. */
export const addressSize = 28
/** Level of the options and control messages of UDP (udp(7)). */
export const SOL_UDP = 17

/** struct mmsghdr, in words of 4 bytes: struct msghdr (name, its length, vectors, their number, control data, its length, flags), the length received. */
const headerWords = 16
const headerAt = { name: 0, nameLength: 2, vectors: 4, vectorCount: 6, control: 8, controlLength: 10, length: 14 } as const
/** struct iovec, in words: address and length. */
const vectorWords = 4
/** struct cmsghdr (length, level, type) and a value of at most 8 bytes, in words (cmsg(3)). */
const controlWords = 6
const controlAt = { length: 0, level: 2, type: 3, value: 4 } as const
const controlHeader = 16
const controlSize = controlWords * 4

/** Writes a number of 64 bits into words; pointers and lengths are below 2^53. */
function write64(words: Uint32Array, at: number, value: number): void {
  words[at] = value >>> 0
  words[at + 1] = Math.floor(value / 2 ** 32)
}

const read64 = (words: Uint32Array, at: number): number => (words[at + 1] ?? 0) * 2 ** 32 + (words[at] ?? 0)

/** A batch of messages. */
export class MessageBatch {
  readonly #headers = new Uint32Array(batchLength * headerWords)
  readonly #vectors = new Uint32Array(batchLength * vectorWords)
  readonly #controls = new Uint32Array(batchLength * controlWords)
  readonly #addresses = new Uint8Array(batchLength * addressSize)
  readonly #base = ptr(this.#headers)

  constructor() {
    const [vectors, controls, addresses] = [ptr(this.#vectors), ptr(this.#controls), ptr(this.#addresses)]
    for (let index = 0; index < batchLength; index++) {
      const at = index * headerWords
      write64(this.#headers, at + headerAt.name, addresses + index * addressSize)
      write64(this.#headers, at + headerAt.vectors, vectors + index * vectorWords * 4)
      write64(this.#headers, at + headerAt.vectorCount, 1)
      write64(this.#headers, at + headerAt.control, controls + index * controlSize)
    }
  }

  /** Where the header of a message lies, for the kernel. */
  header(index: number): Pointer {
    return (this.#base + index * headerWords * 4) as Pointer
  }

  /** The room for the address of a message. */
  address(index: number, length: number): Uint8Array {
    return this.#addresses.subarray(index * addressSize, index * addressSize + length)
  }

  /** Length of the address of a message. */
  addressLength(index: number): number {
    return this.#headers[index * headerWords + headerAt.nameLength] ?? 0
  }

  /** States where the bytes of a message lie. */
  setVector(index: number, address: number, length: number): void {
    write64(this.#vectors, index * vectorWords, address)
    write64(this.#vectors, index * vectorWords + 2, length)
  }

  /** The bytes of a message. */
  vector(index: number): { address: number; length: number } {
    return { address: read64(this.#vectors, index * vectorWords), length: read64(this.#vectors, index * vectorWords + 2) }
  }

  /** Makes a header ready to receive: all room for the address and the control message. */
  expect(index: number): void {
    this.#headers[index * headerWords + headerAt.nameLength] = addressSize
    this.#headers[index * headerWords + headerAt.controlLength] = controlSize
  }

  /** Makes a header ready to send to an address, without a control message. */
  addressTo(index: number, to: Uint8Array): void {
    this.#addresses.set(to, index * addressSize)
    this.#headers[index * headerWords + headerAt.nameLength] = to.length
    this.#headers[index * headerWords + headerAt.controlLength] = 0
  }

  /** Bytes of a received message. */
  received(index: number): number {
    return this.#headers[index * headerWords + headerAt.length] ?? 0
  }

  /** The 16-bit value of the control message of UDP of a type; 0 when there is none. */
  control(index: number, type: number): number {
    const at = index * controlWords
    const length = this.#headers[index * headerWords + headerAt.controlLength] ?? 0
    const controls = this.#controls
    if (length <= controlHeader || controls[at + controlAt.level] !== SOL_UDP || controls[at + controlAt.type] !== type) return 0
    return (controls[at + controlAt.value] ?? 0) & 0xffff
  }

  /** Adds a control message of UDP with a 16-bit value. */
  setControl(index: number, type: number, value: number): void {
    const at = index * controlWords
    write64(this.#controls, at + controlAt.length, controlHeader + 2)
    this.#controls[at + controlAt.level] = SOL_UDP
    this.#controls[at + controlAt.type] = type
    this.#controls[at + controlAt.value] = value
    this.#headers[index * headerWords + headerAt.controlLength] = controlSize
  }
}
