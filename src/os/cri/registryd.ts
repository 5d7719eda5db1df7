import type { ImageTable, LayerEntry, Segment } from '../../oci/image.ts'
import { cacheFiles, mediaTypeOf, parseRegistryPath } from '../../oci/image-cache.ts'
import { type RegistryAnswer, registryOf } from '../../oci/registry.ts'
import { segmentLength, sliceSegments } from '../../oci/segments.ts'

/** The table of container images that the image's own files add up to. */
export const imagesFile = '/usr/share/ichor/images.json'

/** registryd's port on loopback. */
export const registryPort = 3172

/** The only access that registryd needs to the root file system: exactly `length` bytes of a file from `offset`. */
export interface SliceReader {
  readSlice(path: string, offset: number, length: number): Promise<Uint8Array>
}

/** What registryd serves and where. */
export interface RegistryOptions {
  images: ImageTable
  files: SliceReader
  /** How the entries of a layer become a tar. */
  layout: (entries: readonly LayerEntry[]) => Segment[]
  /** Folders of further images (`talosctl image cache-create --layout flat`), read for every request. */
  caches?: () => readonly string[]
  /** The size of a file; undefined when it does not exist. */
  sizeOf?: (path: string) => number | undefined
}

/** Bytes read at a time: large enough to be quick, small enough that many pulls fit into memory. */
const chunk = 256 * 1024
const maxManifest = 4 << 20

type Handler = (request: Request) => Promise<Response>

/** A listening port and its current handler. */
export interface HeldPort {
  readonly port: number
  /** Sets the handler; the returned function removes it. */
  answer(handler: Handler): () => void
  close(): Promise<void>
}

/**
 * Listens on a loopback port whether or not there is a handler; without one, requests fail with 503. containerd trusts whatever
 * serves registryd's port with every image, so the port is kept over the service's restarts, out of reach of pods in the host
 * network.
 */
export function holdPort(port: number): HeldPort {
  let current: Handler | undefined
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port,
    idleTimeout: 120,
    fetch: (request) => current?.(request) ?? new Response('registryd is not running\n', { status: 503, headers: { 'retry-after': '1' } }),
  })
  return {
    port: server.port ?? port,
    answer(handler) {
      current = handler
      return () => {
        if (current === handler) current = undefined
      }
    },
    close: () => server.stop(true),
  }
}

/** Serves the images of the root file system; layers stream from the files themselves. The returned function ends it. */
export function serveRegistry(held: HeldPort, options: RegistryOptions): () => void {
  const { images, files, layout } = options
  const registry = registryOf(images)
  const layouts = new Map<string, Segment[]>()
  const body = (answer: RegistryAnswer): string | ReadableStream<Uint8Array> | null => {
    if (!answer.body) return null
    if ('text' in answer.body) return answer.body.text
    const { layer, start, length } = answer.body
    const segments = layouts.get(layer.digest) ?? layout(layer.entries)
    layouts.set(layer.digest, segments)
    return streamSegments(
      sliceSegments(segments, start, length).filter((segment) => segmentLength(segment) > 0),
      files,
    )
  }
  return held.answer(async (request) => {
    const url = new URL(request.url)
    const answer = registry.answer({ method: request.method, url: url.pathname + url.search, headers: request.headers })
    const cached = answer.status === 404 ? await fromCaches(options, request.method, url.pathname + url.search) : undefined
    return cached ?? new Response(body(answer), { status: answer.status, headers: answer.headers })
  })
}

/** Serves a cached image. Clients that name no registry get only images of the root file system. */
async function fromCaches({ caches, sizeOf, files }: RegistryOptions, method: string, url: string): Promise<Response | undefined> {
  const requested = parseRegistryPath(url)
  if (!requested || !caches || !sizeOf) return undefined
  for (const folder of caches())
    for (const file of cacheFiles(requested)) {
      const path = `${folder}/${file}`
      const length = sizeOf(path)
      if (length === undefined) continue
      const headers: Record<string, string> = { 'content-type': 'application/octet-stream', 'content-length': String(length) }
      if (requested.kind === 'manifests') {
        if (length > maxManifest) continue
        const text = Buffer.from(await files.readSlice(path, 0, length))
        headers['content-type'] = mediaTypeOf(text.toString())
        headers['docker-content-digest'] = `sha256:${new Bun.CryptoHasher('sha256').update(text).digest('hex')}`
      } else headers['docker-content-digest'] = requested.reference
      return new Response(method === 'HEAD' ? null : streamSegments([{ file: path, offset: 0, length }], files), { headers })
    }
  return undefined
}

/** Reads segments only as fast as they are consumed. */
function streamSegments(segments: readonly Segment[], files: SliceReader): ReadableStream<Uint8Array> {
  let index = 0
  let done = 0
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const segment = segments[index]
        if (!segment) return controller.close()
        if ('bytes' in segment) {
          index++
          return controller.enqueue(segment.bytes)
        }
        const length = Math.min(chunk, segment.length - done)
        const bytes = await files.readSlice(segment.file, segment.offset + done, length)
        if (bytes.length !== length)
          throw new Error(`layer file "${segment.file}": ${bytes.length} of ${length} bytes at ${segment.offset + done}`)
        done += length
        if (done === segment.length) {
          index++
          done = 0
        }
        controller.enqueue(bytes)
      },
    },
    { highWaterMark: 1 },
  )
}
