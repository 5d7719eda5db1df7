/**
 * A client of S3-compatible servers. Every request is bounded: by a time limit, by the size of a part when sent, and by the size of a
 * range when read. The runtime's own client has neither time limits nor authorities of its own for a server.
 */
import type { Clock } from '../../../cosi/clock.ts'
import { codeOf } from '../../../wire/errno.ts'
import { boundedBody } from '../../../wire/http/bounded-body.ts'
import { parseS3Error, parseS3Page, type S3Page, textIn } from '../../../wire/s3/listing.ts'
import { type S3Credentials, sha256, signed } from '../../../wire/s3/signature.ts'

/** A bucket and how it is reached. */
export interface S3Place extends S3Credentials {
  /** `https://s3.example.org` */
  readonly endpoint: string
  readonly bucket: string
  /** Authorities of the server, PEM; undefined for those that the system trusts. */
  readonly ca: string | undefined
}

/** One call. */
interface Call {
  readonly query?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Uint8Array
  /** Bytes of the answer that are read. */
  readonly most?: number
}

/** Milliseconds for one request with its answer. */
const requestLimit = 120_000
/** Milliseconds before each further attempt after an error that may pass. */
const delays = [1_000, 5_000]
/** Bytes of an answer that is no object. */
const mostAnswer = 4 << 20

/** An answer that is an error. */
export class S3Error extends Error {
  override name = 'S3Error'
  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message)
  }
}

/** A client of one bucket. */
export class S3Client {
  readonly #place: S3Place
  readonly #clock: Clock

  constructor(place: S3Place, clock: Clock) {
    this.#place = place
    this.#clock = clock
  }

  /** A page of the objects whose keys begin with `prefix`, without those in folders below it. */
  async list(prefix: string, token: string | undefined, signal: AbortSignal): Promise<S3Page> {
    const query = { 'list-type': '2', 'encoding-type': 'url', delimiter: '/', prefix, ...(token && { 'continuation-token': token }) }
    return parseS3Page((await this.#call('GET', '', { query }, signal)).body.toString())
  }

  /** The size of an object in bytes. */
  async size(key: string, signal: AbortSignal): Promise<number> {
    const { headers } = await this.#call('HEAD', key, {}, signal)
    return Number(headers.get('content-length') ?? 'none')
  }

  /** A range of an object. */
  async range(key: string, offset: number, length: number, signal: AbortSignal): Promise<Uint8Array> {
    const headers = { range: `bytes=${offset}-${offset + length - 1}` }
    return (await this.#call('GET', key, { headers, most: length }, signal)).body
  }

  async put(key: string, body: Uint8Array, signal: AbortSignal): Promise<void> {
    await this.#call('PUT', key, { body }, signal)
  }

  async remove(key: string, signal: AbortSignal): Promise<void> {
    await this.#call('DELETE', key, {}, signal)
  }

  /** Stores an object in parts (of at least 5 MiB, but the last). When that fails nothing of it is kept. */
  async putParts(key: string, parts: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<void> {
    const begun = await this.#call('POST', key, { query: { uploads: '' } }, signal)
    const uploadId = textIn(begun.body.toString(), 'UploadId')
    if (!uploadId) throw new S3Error(`${this.#where(key)}: the server began no upload`, begun.status)
    try {
      const done: string[] = []
      for await (const body of parts) {
        const partNumber = String(done.length + 1)
        const { headers } = await this.#call('PUT', key, { query: { partNumber, uploadId }, body }, signal)
        const tag = (headers.get('etag') ?? '').replaceAll(/[<>&]/g, '')
        done.push(`<Part><PartNumber>${partNumber}</PartNumber><ETag>${tag}</ETag></Part>`)
      }
      const body = Buffer.from(`<CompleteMultipartUpload>${done.join('')}</CompleteMultipartUpload>`)
      const ended = await this.#call('POST', key, { query: { uploadId }, body }, signal)
      // The server answers before it has put the parts together, so that an error may follow a status of success.
      const problem = parseS3Error(ended.body.toString())
      if (problem) throw new S3Error(`${this.#where(key)}: ${problem}`, ended.status)
    } catch (error) {
      // The reason to give up may be the signal. A server that is gone drops the parts by its own rules.
      await this.#call('DELETE', key, { query: { uploadId } }, AbortSignal.timeout(requestLimit)).catch(() => {})
      throw error
    }
  }

  async #call(method: string, key: string, call: Call, signal: AbortSignal) {
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.#once(method, key, call, signal)
      } catch (error) {
        const passing = !(error instanceof S3Error) || error.status >= 500 || error.status === 429
        const delay = delays[attempt]
        if (!passing || delay === undefined || signal.aborted) throw error
        await this.#clock.sleep(delay, signal)
        signal.throwIfAborted()
      }
    }
  }

  async #once(method: string, key: string, { query, headers = {}, body, most = mostAnswer }: Call, signal: AbortSignal) {
    const { endpoint, bucket, ca } = this.#place
    const { origin, host, pathname } = new URL(endpoint)
    const path = `${pathname.replace(/\/$/, '')}/${bucket}${key && `/${key}`}`
    const bodyHash = sha256(body ?? '')
    const own = { method, host, path, headers, bodyHash, time: this.#clock.now(), ...(query && { query }) }
    const { target, headers: sent } = signed(own, this.#place)
    const timeout = AbortSignal.timeout(requestLimit)
    let response: Response
    try {
      response = await fetch(`${origin}${target}`, {
        method,
        headers: sent,
        redirect: 'manual',
        signal: AbortSignal.any([signal, timeout]),
        ...(body && { body: new Uint8Array(body) }),
        ...(ca && { tls: { ca } }),
      })
      const answer = method === 'HEAD' ? Buffer.alloc(0) : await boundedBody(response, response.ok ? most : mostAnswer)
      if (response.ok) return { status: response.status, headers: response.headers, body: answer }
      const reason = parseS3Error(answer.toString()) ?? `the server answered ${response.status}`
      throw new S3Error(`${this.#where(key)}: ${reason}`, response.status)
    } catch (error) {
      if (error instanceof S3Error) throw error
      signal.throwIfAborted()
      throw new Error(`${this.#where(key)}: ${timeout.aborted ? `no answer within ${requestLimit / 1000} s` : codeOf(error)}`)
    }
  }

  #where(key: string): string {
    return `${new URL(this.#place.endpoint).host} ${this.#place.bucket}${key && `/${key}`}`
  }
}
