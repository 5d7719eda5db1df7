/** An HTTP/2 client that sends exactly the frames a test gives it. */
import { errorName } from '../../../src/wire/http2/error.ts'
import { FrameReader, flag, frameType, headerSize, preface, writeHeader } from '../../../src/wire/http2/frame.ts'
import { HpackDecoder, HpackEncoder, type OutgoingHeaders } from '../../../src/wire/http2/hpack.ts'
import { settingsFrame } from '../../../src/wire/http2/settings.ts'

export class RawClient {
  /** The frames received, one a line: `HEADERS 1 end`, `RST_STREAM 3 REFUSED_STREAM`, `GOAWAY PROTOCOL_ERROR`. */
  readonly frames: string[] = []
  readonly headers = new Map<number, Record<string, string>>()
  /** The debug data of the GOAWAY received. */
  farewell = ''
  /** Bytes of DATA received on each stream. */
  readonly received = new Map<number, number>()
  closed = false
  readonly #encoder = new HpackEncoder()
  readonly #decoder = new HpackDecoder()
  #socket!: Bun.Socket<undefined>
  #waiting: (() => void)[] = []
  #queue: Buffer[] = []
  #unsent: Buffer = Buffer.alloc(0)

  /** Connects to a unix socket, or over TLS, and sends the preface and its settings unless `greet` is false. */
  static async connect(
    place: string | { hostname: string; port: number; tls?: Bun.TLSOptions },
    { greet = true, settings = {} }: { greet?: boolean; settings?: Parameters<typeof settingsFrame>[0] } = {},
  ): Promise<RawClient> {
    const client = new RawClient()
    const reader = new FrameReader(
      {
        begin() {},
        data: (stream, piece, left, flags) => {
          client.received.set(stream, (client.received.get(stream) ?? 0) + piece.length)
          if (left === 0) client.#record(`DATA ${stream}${flags & flag.END_STREAM ? ' end' : ''}`)
        },
        frame: (type, flags, stream, payload) => client.#onFrame(type, flags, stream, payload),
      },
      1 << 24,
    )
    const secured = Promise.withResolvers<void>()
    const ended = () => {
      secured.reject(new Error('the connection ended before the handshake did'))
      client.#end()
    }
    secured.promise.catch(() => {}) // Nobody waits for it on a unix socket.
    client.#socket = await Bun.connect({
      ...((typeof place === 'string'
        ? { unix: place }
        : {
            ...place,
            ...(place.tls && { tls: { ALPNProtocols: Buffer.from('\x02h2'), rejectUnauthorized: false, ...place.tls } }),
          }) as { unix: string }),
      socket: {
        data: (_, chunk) => void reader.push(chunk),
        drain: () => client.#flush(),
        handshake: () => secured.resolve(),
        close: ended,
        error: ended,
      },
    })
    if (typeof place !== 'string' && place.tls) await secured.promise
    if (greet) client.send(preface, settingsFrame(settings))
    return client
  }

  /** Sends bytes in one write with everything else that is sent in the same turn of the event loop. */
  send(...bytes: Buffer[]): void {
    if (this.#queue.push(...bytes) > bytes.length) return
    queueMicrotask(() => {
      this.#unsent = Buffer.concat([this.#unsent, ...this.#queue.splice(0)])
      this.#flush()
    })
  }

  frame(type: number, flags: number, stream: number, payload: Buffer = Buffer.alloc(0)): void {
    const out = Buffer.alloc(headerSize + payload.length)
    payload.copy(out, writeHeader(out, 0, payload.length, type, flags, stream))
    this.send(out)
  }

  settings(settings: Parameters<typeof settingsFrame>[0]): void {
    this.send(settingsFrame(settings))
  }

  request(stream: number, more: OutgoingHeaders = {}, flags: number = flag.END_HEADERS | flag.END_STREAM): void {
    const block = this.#encoder.encode({ ':method': 'POST', ':scheme': 'http', ':path': '/', ':authority': 'test', ...more })
    this.frame(frameType.HEADERS, flags, stream, Buffer.from(block))
  }

  /** Sends the trailers of a request. */
  trailers(stream: number, headers: OutgoingHeaders): void {
    this.frame(frameType.HEADERS, flag.END_HEADERS | flag.END_STREAM, stream, Buffer.from(this.#encoder.encode(headers)))
  }

  /** Stops reading until `resume`. */
  pause(): void {
    this.#socket.pause()
  }

  resume(): void {
    this.#socket.resume()
  }

  /** Waits until a condition holds. It is evaluated after every frame. */
  async until(holds: () => boolean): Promise<void> {
    while (!holds()) {
      if (this.closed) throw new Error(`connection closed after ${this.frames.slice(-5).join(', ')}`)
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    }
  }

  /** Waits for the end of the connection; returns the last frame received. */
  async end(): Promise<string> {
    while (!this.closed) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    return this.frames.at(-1) ?? ''
  }

  close(): void {
    this.#socket.terminate()
  }

  #flush(): void {
    const written = this.#socket.write(this.#unsent)
    if (written > 0) this.#unsent = this.#unsent.subarray(written)
  }

  #onFrame(type: number, flags: number, stream: number, payload: Buffer): void {
    const [name] = Object.entries(frameType).find(([, number]) => number === type) ?? ['UNKNOWN']
    if (type === frameType.HEADERS) {
      const headers: Record<string, string> = {}
      this.#decoder.decode(payload, (key, value) => {
        headers[key] = value
      })
      this.headers.set(stream, { ...this.headers.get(stream), ...headers })
    }
    if (type === frameType.GOAWAY) this.farewell = payload.toString('latin1', 8)
    const detail =
      type === frameType.RST_STREAM
        ? ` ${errorName(payload.readUInt32BE(0))}`
        : type === frameType.GOAWAY
          ? ` ${errorName(payload.readUInt32BE(4))}`
          : type === frameType.HEADERS && flags & flag.END_STREAM
            ? ' end'
            : ''
    this.#record(`${name}${stream > 0 ? ` ${stream}` : ''}${detail}`)
  }

  #record(line: string): void {
    this.frames.push(line)
    for (const wake of this.#waiting.splice(0)) wake()
  }

  #end(): void {
    this.closed = true
    for (const wake of this.#waiting.splice(0)) wake()
  }
}
