/** Answers with the bytes of assets: whole, from some byte on, or their hash. */
import { parseRange } from '../../oci/byte-range.ts'
import { segmentLength, sliceSegments } from '../../oci/segments.ts'
import type { Asset } from './assets.ts'
import { FactoryError } from './factory-error.ts'

/** The asset, or the range of it that the request names (RFC 9110, 13.1.5 and 14), with headers of its own. Files are read as the client takes them. */
export function download(asset: Asset, { method, headers: requested }: Request, own: Readonly<Record<string, string>> = {}): Response {
  const { name, size, etag, content } = asset
  const headers: Record<string, string> = {
    ...{ 'content-type': 'application/octet-stream', 'content-disposition': `attachment; filename="${name}"` },
    ...{ 'accept-ranges': 'bytes', etag },
    ...own,
  }
  if (requested.get('if-none-match') === etag) return new Response(null, { status: 304, headers })
  const condition = requested.get('if-range')
  const header = condition === null || condition === etag ? requested.get('range') : null
  const range = header === null ? undefined : parseRange(header, size)
  if (range === 'unsatisfiable')
    return new Response('the range lies outside the image\n', {
      status: 416,
      headers: { 'content-type': 'text/plain', 'content-range': `bytes */${size}` },
    })
  const { start, end } = range ?? { start: 0, end: size - 1 }
  headers['content-length'] = String(end - start + 1)
  if (range) headers['content-range'] = `bytes ${start}-${end}/${size}`
  const [part] = sliceSegments([content], start, end - start + 1)
  const body = method === 'HEAD' || !part ? null : 'bytes' in part ? new Blob([Buffer.from(part.bytes)]) : stretch(part)
  return new Response(body, { status: range ? 206 : 200, headers })
}

const stretch = ({ file, offset, length }: { file: string; offset: number; length: number }) =>
  Bun.file(file).slice(offset, offset + length)

/** Milliseconds for the hash of an asset, hashes at a time, and hashes that are remembered. */
const hashLimit = 10 * 60_000
const mostAtOnce = 4
const mostHashes = 256

/** Hashes of assets; one that is requested twice is computed once. */
export class Checksums {
  readonly #known = new Map<string, Promise<string>>()
  #running = 0

  /** The line that sha256sum and sha512sum check. Throws FactoryError. */
  async lineOf(asset: Asset, algorithm: 'sha256' | 'sha512'): Promise<string> {
    return `${await this.hashOf(asset, algorithm)}  ${asset.name}\n`
  }

  /** The hash in hex. Throws FactoryError. */
  async hashOf(asset: Asset, algorithm: 'sha256' | 'sha512'): Promise<string> {
    const key = `${algorithm} ${asset.etag}`
    let found = this.#known.get(key)
    if (!found) {
      if (this.#running >= mostAtOnce) throw new FactoryError(503, 'too many checksums are being computed: retry later')
      const [oldest] = this.#known.keys()
      if (oldest !== undefined && this.#known.size >= mostHashes) this.#known.delete(oldest)
      this.#running++
      found = hashOf(asset, algorithm).finally(() => this.#running--)
      this.#known.set(key, found)
      found.catch(() => this.#known.delete(key))
    }
    return found
  }
}

async function hashOf({ content }: Asset, algorithm: 'sha256' | 'sha512'): Promise<string> {
  const hasher = new Bun.CryptoHasher(algorithm)
  if ('bytes' in content) return hasher.update(content.bytes).digest('hex')
  const deadline = AbortSignal.timeout(hashLimit)
  let left = segmentLength(content)
  for await (const chunk of stretch(content).stream()) {
    if (deadline.aborted) throw new FactoryError(503, `the checksum was not computed within ${hashLimit / 60_000} minutes`)
    hasher.update(chunk)
    left -= chunk.length
  }
  if (left !== 0) throw new FactoryError(503, 'the image was replaced while its checksum was computed: retry')
  return hasher.digest('hex')
}
