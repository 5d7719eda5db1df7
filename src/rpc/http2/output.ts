/** The output buffer of a connection: frames in one buffer, written to the socket once per turn of the event loop. */
import { frameType, headerSize, writeHeader } from '../../wire/http2/frame.ts'

/** The peer of a connection. */
export interface PeerSocket {
  /** The descriptor, for which the kernel knows the peer process; negative when it is closed. */
  readonly fd: number
  /** TCP only. */
  readonly remoteAddress?: string | undefined
  readonly remotePort?: number | undefined
}

/** What a connection needs of a socket; satisfied by Bun's sockets. */
export interface Socket extends PeerSocket {
  /** Returns how many bytes were accepted; `drained` follows when not all were. Negative when the socket is closed. */
  write(bytes: Uint8Array, from: number, length: number): number
  end(): void
  /** Shuts down the sending side. */
  shutdown(): void
  terminate(): void
  pause(): void
  resume(): void
  /** Whether an open socket keeps the program running. */
  ref(): void
  unref(): void
}

const usual = 16_384
const kept = 262_144
const nothing = Buffer.alloc(0)

/** A pool of buffers shared by all connections, because most of them are idle at any time. */
const spare: Buffer[] = []
const mostSpare = 16

/** The outgoing side of a connection. */
export class Output {
  #buffer: Buffer = nothing
  #start = 0
  #end = 0
  #scheduled = false
  #blocked = false
  #over = false
  /** Bytes of the buffer that are charged, from when the socket was full until everything was sent. */
  #charged = 0
  readonly #socket: Socket
  readonly #refill: () => void
  /** Receives the change in bytes that wait for a full socket. */
  charge: (bytes: number) => void = () => {}

  /** `refill` is called for more whenever everything was sent. */
  constructor(socket: Socket, refill: () => void) {
    this.#socket = socket
    this.#refill = refill
  }

  /** Pending bytes. */
  get size(): number {
    return this.#end - this.#start
  }

  /** Adds a frame. */
  frame(type: number, flags: number, stream: number, payload: Buffer): void {
    this.#room(headerSize + payload.length)
    const at = writeHeader(this.#buffer, this.#end, payload.length, type, flags, stream)
    this.#end = at + payload.copy(this.#buffer, at)
  }

  /** Adds a frame whose payload is one number. */
  number(type: number, stream: number, value: number): void {
    this.#room(headerSize + 4)
    const at = writeHeader(this.#buffer, this.#end, 4, type, 0, stream)
    this.#end = this.#buffer.writeUInt32BE(value >>> 0, at)
  }

  /** Adds a DATA frame with a part of a chunk. */
  data(flags: number, stream: number, chunk: Buffer, from: number, to: number): void {
    this.#room(headerSize + to - from)
    const at = writeHeader(this.#buffer, this.#end, to - from, frameType.DATA, flags, stream)
    this.#end = at + chunk.copy(this.#buffer, at, from, to)
  }

  /** Adds raw bytes. */
  raw(bytes: Buffer): void {
    this.#room(bytes.length)
    this.#end += bytes.copy(this.#buffer, this.#end)
  }

  /** Sends at the end of this turn, together with everything added until then. */
  schedule(): void {
    if (this.#scheduled || this.#blocked || this.#over) return
    this.#scheduled = true
    queueMicrotask(this.#run)
  }

  readonly #run = () => {
    this.#scheduled = false
    this.flush()
  }

  /** Sends as much as the socket accepts. */
  flush(): void {
    while (this.#end > this.#start && !this.#blocked && !this.#over) {
      const written = this.#socket.write(this.#buffer, this.#start, this.#end - this.#start)
      if (written < 0) {
        this.#over = true
        return
      }
      this.#start += written
      if (this.#start < this.#end) {
        this.#blocked = true
        this.#count(this.#buffer.length)
        return
      }
      this.#start = this.#end = 0
      this.#refill()
    }
    if (this.#end === this.#start && !this.#over) this.#giveBack()
  }

  #giveBack(): void {
    if (this.#buffer.length >= usual && this.#buffer.length <= kept && spare.length < mostSpare) spare.push(this.#buffer)
    this.#buffer = nothing
    this.#start = this.#end = 0
  }

  /** The socket accepts bytes again. */
  drained(): void {
    this.#blocked = false
    this.flush()
    if (!this.#blocked) this.#count(0)
  }

  #count(bytes: number): void {
    const more = bytes - this.#charged
    if (more === 0) return
    this.#charged = bytes
    this.charge(more)
  }

  /** Stops sending. */
  close(): void {
    this.#over = true
    this.#start = this.#end = 0
    this.#buffer = nothing
    this.#count(0)
  }

  #room(size: number): void {
    if (this.#end + size <= this.#buffer.length) return
    if (this.#buffer === nothing) {
      this.#buffer = spare.pop() ?? Buffer.allocUnsafeSlow(Math.max(usual, size))
      if (size <= this.#buffer.length) return
    }
    const waiting = this.#end - this.#start
    const wanted = waiting + size
    // Moved to the front when that is enough, into a larger buffer otherwise.
    const target = wanted <= this.#buffer.length ? this.#buffer : Buffer.allocUnsafeSlow(Math.max(wanted, this.#buffer.length * 2))
    this.#buffer.copy(target, 0, this.#start, this.#end)
    this.#buffer = target
    this.#start = 0
    this.#end = waiting
    if (this.#blocked) this.#count(target.length)
  }
}
