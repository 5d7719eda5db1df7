/** Received header blocks: assembled from their frames, decoded in order, and passed to their streams. */
import { ConnectionError } from '../../wire/http2/error.ts'
import { content, flag, frameType } from '../../wire/http2/frame.ts'
import { type Headers, HpackDecoder } from '../../wire/http2/hpack.ts'
import { endWith } from '../frame.ts'
import { RpcError } from '../status.ts'
import { HeaderList } from './header-list.ts'
import { maxContinuations, maxHeaderList, ordinaryHeaders } from './limits.ts'
import type { Share } from './shares.ts'
import { type Carrier, Stream } from './stream.ts'
import type { Streams } from './streams.ts'

const tooLarge = `headers are larger than the limit of ${maxHeaderList} bytes`

/** How a connection handles headers. */
export interface HeaderOptions {
  readonly carrier: Carrier
  readonly server: boolean
  readonly streams: Streams
  readonly maxStreams: number
  /** Counts the bytes of an incomplete block. */
  charge(bytes: number): void
  /** The client that a call is charged to. */
  readonly shareOf: (headers: Headers) => Share | undefined
  /** A request has arrived. */
  readonly request: (stream: Stream, headers: Headers) => void
  /** Whether new streams are refused. */
  closing(): boolean
  /** END_STREAM was received. */
  received(stream: Stream, trailers: Headers | undefined): void
}

/** The header blocks of one connection. */
export class HeaderBlocks {
  readonly #options: HeaderOptions
  readonly #decoder = new HpackDecoder()
  #block: { id: number; flags: number; pieces: Buffer[]; size: number } | undefined

  constructor(options: HeaderOptions) {
    this.#options = options
  }

  /** The stream of the incomplete block: no other frame may arrive before its end. */
  get unfinished(): number | undefined {
    return this.#block?.id
  }

  /** Handles a HEADERS frame. */
  headers(id: number, flags: number, payload: Buffer): void {
    const block = content(frameType.HEADERS, flags, payload)
    if (flags & flag.END_HEADERS) this.#whole(id, flags, block)
    else {
      this.#block = { id, flags, pieces: [Buffer.from(block)], size: block.length }
      this.#options.charge(block.length)
    }
  }

  /** Handles a CONTINUATION frame. */
  continuation(flags: number, payload: Buffer): void {
    const block = this.#block
    if (!block) throw new ConnectionError('PROTOCOL_ERROR', 'CONTINUATION of no header block')
    block.pieces.push(Buffer.from(payload))
    block.size += payload.length
    this.#options.charge(payload.length)
    if (block.size > 2 * maxHeaderList || block.pieces.length > maxContinuations)
      throw new ConnectionError('ENHANCE_YOUR_CALM', 'header block is too long')
    if ((flags & flag.END_HEADERS) === 0) return
    this.drop()
    this.#whole(block.id, block.flags, Buffer.concat(block.pieces))
  }

  /** Drops the incomplete block. */
  drop(): void {
    if (this.#block) this.#options.charge(-this.#block.size)
    this.#block = undefined
  }

  #whole(id: number, flags: number, block: Buffer): void {
    const { server, streams } = this.#options
    const stream = streams.get(id)
    const fresh = !stream && server && streams.isIdle(id)
    const kind = fresh ? 'request' : server || stream?.answered ? 'trailers' : 'response'
    const list = new HeaderList(kind)
    // Also decoded for streams that no longer exist: the header tables of both sides must stay equal.
    this.#decoder.decode(block, list.take)
    const end = (flags & flag.END_STREAM) !== 0
    if (fresh) this.#opened(id, list, end)
    else if (!stream) this.#stray(id)
    else if (stream.remoteEnded) streams.abortStream(stream, 'STREAM_CLOSED', 'headers after the end')
    else if (kind === 'response') this.#answered(stream, list, end)
    else this.#trailers(stream, list, end)
  }

  #opened(id: number, list: HeaderList, end: boolean): void {
    const { carrier, streams, maxStreams, request, shareOf, closing } = this.#options
    if (id % 2 === 0) throw new ConnectionError('PROTOCOL_ERROR', `a client opened stream ${id}`)
    streams.last = id
    const { headers } = list
    const length = headers['content-length']
    if (closing()) streams.ignore(id)
    else if (streams.active >= maxStreams) streams.refuse(id, 'REFUSED_STREAM')
    else if (list.fault() !== undefined || !isLength(length, end)) streams.refuse(id, 'PROTOCOL_ERROR')
    else {
      const stream = new Stream(carrier)
      stream.expected = length === undefined ? -1 : Number(length)
      stream.remoteEnded = end
      streams.accept(id, stream)
      const share = shareOf(headers)
      const refusal = list.tooLarge ? tooLarge : share?.open(stream)
      if (refusal === undefined) stream.share = share
      if (refusal !== undefined) endWith(stream, new RpcError('ResourceExhausted', refusal))
      else {
        // They are kept until the call ends: as metadata, for logs, or to be forwarded.
        stream.charge(Math.max(0, list.memory - ordinaryHeaders))
        request(stream, headers)
      }
      if (end && !stream.closed) stream.arrived({ trailers: undefined })
    }
  }

  #answered(stream: Stream, list: HeaderList, end: boolean): void {
    const { streams, received } = this.#options
    const interim = String(list.headers[':status']).startsWith('1')
    const fault = list.tooLarge ? tooLarge : (list.fault() ?? (interim && end ? 'stream ended before its response' : undefined))
    if (fault !== undefined) streams.abortStream(stream, 'PROTOCOL_ERROR', fault)
    else if (!interim) {
      stream.answered = true
      if (end) stream.remoteEnded = true
      stream.arrived({ headers: list.headers })
      if (end) received(stream, undefined)
    }
  }

  #trailers(stream: Stream, list: HeaderList, end: boolean): void {
    const { server, streams, received } = this.#options
    const fault = end ? (list.tooLarge ? tooLarge : list.fault()) : 'HEADERS without END_STREAM after the request'
    if (fault !== undefined) streams.abortStream(stream, 'PROTOCOL_ERROR', fault)
    else if (stream.expected > 0) streams.abortStream(stream, 'PROTOCOL_ERROR', 'content-length is not the length of the content')
    else {
      stream.remoteEnded = true
      // gRPC does not use trailers of a request.
      received(stream, server ? undefined : list.headers)
    }
  }

  /** Handles headers of a stream that has ended or was never opened. */
  #stray(id: number): void {
    const { server, streams } = this.#options
    if (!server) {
      if (streams.isIdle(id)) throw new ConnectionError('PROTOCOL_ERROR', `HEADERS of stream ${id}, which was never opened`)
      return
    }
    const broken = streams.brokenByUs(id)
    if (broken) return
    throw new ConnectionError(broken === false ? 'STREAM_CLOSED' : 'PROTOCOL_ERROR', `HEADERS of stream ${id}, which has ended`)
  }
}

/** Whether a content-length is valid and consistent with a request that may have ended already. */
function isLength(value: string | string[] | undefined, end: boolean): boolean {
  if (value === undefined) return true
  return typeof value === 'string' && /^\d{1,15}$/.test(value) && (!end || Number(value) === 0)
}
