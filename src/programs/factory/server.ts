/** The HTTP API of the image factory of the field: schematics, the versions of images, and images. */
import { timingSafeEqual } from 'node:crypto'
import type { Logger } from '../../cosi/log.ts'
import type { VexDocument } from '../../oci/openvex.ts'
import type { ServerTls } from '../../rpc/http2/listen.ts'
import { within } from '../../timing/within.ts'
import { messageOf } from '../../wire/error-message.ts'
import { BodyTooLarge, boundedBody } from '../../wire/http/bounded-body.ts'
import { assetOf, bootParameters, extendedRelease } from './assets.ts'
import { imageSbom, provenance, sbomOf } from './attest.ts'
import { Checksums, download } from './download.ts'
import { offeredFor } from './extensions.ts'
import { FactoryError } from './factory-error.ts'
import { longestForm, pageAnswer, postForm } from './page/routes.ts'
import { InstallerRegistry } from './registry.ts'
import { architectureOf, architectures, findReleases, releaseOf, releasesOf, versionsOf } from './releases.ts'
import { longestSchematic, parseSchematic } from './schematic.ts'
import type { Schematics } from './schematics.ts'
import { imageVex, releaseVex, vexAttestation } from './vex.ts'
import type { Workshop } from './workshop.ts'

/** What is served and where. */
export interface FactoryOptions {
  readonly host: string
  readonly port: number
  /** The folder of `findReleases`. */
  readonly images: string
  readonly schematics: Schematics
  readonly workshop: Workshop
  /** What the operator states on flaws of packages. */
  readonly vex?: readonly VexDocument[] | undefined
  /** Where clients reach the server when that is not what they request, as behind a proxy that ends TLS. */
  readonly externalUrl?: string | undefined
  readonly tls?: ServerTls | undefined
  /** Every request but those for health needs this token. */
  readonly token?: string | undefined
  readonly log: Logger
}

/** Most requests that are answered at a time, and milliseconds for the body of one. */
const mostRequests = 64
/** Most requests of which the answer is still being sent: images are large, and clients slow. */
const mostTransfers = 256
const bodyLimit = 10_000

/** Seconds without a byte after which a connection is closed. */
const idleTimeout = 30

/** A factory that listens. */
export interface ServedFactory {
  readonly url: string
  close(): Promise<void>
}

/** Listens until it is closed. */
export function serveFactory(options: FactoryOptions): ServedFactory {
  const { host, port, tls, token, log } = options
  let running = 0
  const state = { checksums: new Checksums(), registry: new InstallerRegistry(options) }
  const server = Bun.serve({
    hostname: host,
    port,
    idleTimeout,
    maxRequestBodySize: longestSchematic,
    ...(tls && { tls: { cert: pem(tls.cert), key: pem(tls.key) } }),
    async fetch(request) {
      if (running >= mostRequests || server.pendingRequests > mostTransfers)
        return refusal(new FactoryError(503, 'too many requests at a time: retry later'))
      running++
      try {
        const url = new URL(request.url)
        if (url.pathname === '/healthz' || url.pathname === '/readyz') return text('ok\n')
        if (token !== undefined) authorize(request, token)
        // Nothing is sent while an image is built or hashed, which has limits of its own.
        if (request.method !== 'POST') server.timeout(request, 0)
        return await answer(options, request, url, state)
      } catch (error) {
        if (error instanceof FactoryError) return refusal(error)
        log.error('request failed', { path: new URL(request.url).pathname.slice(0, 200), error: messageOf(error) })
        return refusal(new FactoryError(500, 'the request failed here: its reason is in the log of the factory'))
      } finally {
        server.timeout(request, idleTimeout)
        running--
      }
    },
  })
  return { url: server.url.origin, close: () => server.stop(true) }
}

interface State {
  readonly checksums: Checksums
  readonly registry: InstallerRegistry
}

async function answer(options: FactoryOptions, request: Request, url: URL, state: State): Promise<Response> {
  const { pathname } = url
  const origin = options.externalUrl ?? url.origin
  const [, room = '', first = '', ...rest] = pathname.split('/')
  if (pathname === '/schematics') return post(options, request)
  if (pathname === '/page/schematic') return postForm(options, await bodyOf(request, longestForm))
  if (request.method !== 'GET' && request.method !== 'HEAD') throw new FactoryError(405, `${request.method} is not possible here: use GET`)
  const page = pageAnswer(options, url, origin)
  if (page) return page
  if (room === 'schematics' && rest.length === 0) {
    return text(options.schematics.get(first).yaml, 'application/yaml')
  }
  if (pathname === '/versions') return Response.json(versionsOf(findReleases(options.images)))
  if (room === 'version' && ['extensions/official', 'overlays/official'].includes(rest.join('/'))) {
    const [{ version }] = releasesOf(options.images, first)
    // No overlay is added to an image that is built already.
    const offered = rest[0] === 'extensions' ? offeredFor(options.workshop.extensions ?? [], version) : []
    return Response.json(
      offered.map(({ ref, digest, metadata: { name, author, description } }) => ({ name, ref, digest, author, description })),
    )
  }
  if (room === 'image' && rest.length === 2) return image(options, request, { id: first, origin, state, path: rest })
  if (room === 'pxe' && rest.length === 2) {
    const schematic = options.schematics.get(first)
    const release = releaseOf(options.images, rest[0] ?? '', architectureOf(rest[1] ?? ''))
    const base = `${origin}/image/${schematic.id}/${release.version}`
    return text(bootScript(base, release.arch, bootParameters(release, schematic, rest[1] ?? '')))
  }
  const arch = architectures.find((each) => each === rest[1])
  if (room === 'spdx' && rest.length === 2 && arch) {
    const schematic = options.schematics.get(first)
    const release = await extendedRelease(options.workshop, releaseOf(options.images, rest[0] ?? '', arch), schematic)
    return text(await sbomOf(release), 'application/spdx+json')
  }
  if (room === 'vex' && rest.join() === 'vex.json') {
    const releases = releasesOf(options.images, first)
    return Response.json(await releaseVex(releases, options.vex ?? [], `${origin}/vex/${releases[0].version}/vex.json`))
  }
  if (pathname === '/v2' || pathname === '/v2/') return Response.json({}, { headers: registryVersion })
  if (room === 'v2') {
    const { digest, mediaType, asset } = await state.registry.content(pathname.slice('/v2/'.length))
    return download(asset, request, { ...registryVersion, 'content-type': mediaType, 'docker-content-digest': digest })
  }
  throw new FactoryError(404, `"${pathname.slice(0, 200)}" is not served here`)
}

/** An image, or what is stated about it: the name of the image, then a dot and the kind of statement. */
async function image(
  options: FactoryOptions,
  request: Request,
  { id, origin, state, path }: { id: string; origin: string; state: State; path: readonly string[] },
): Promise<Response> {
  const { workshop, images, schematics, vex = [] } = options
  const [version = '', name = ''] = path
  const schematic = schematics.get(id)
  const release = releaseOf(images, version, architectureOf(name))
  const [, stem = name, statement] = /^(.+)\.(sha256|sha512|spdx\.json|vex\.json|vex-attestation\.json|provenance\.json)$/.exec(name) ?? []
  const asset = await assetOf(workshop, release, schematic, stem)
  if (statement === undefined) return download(asset, request)
  if (statement === 'sha256' || statement === 'sha512') return text(await state.checksums.lineOf(asset, statement))
  const subject = { name: stem, sha256: await state.checksums.hashOf(asset, 'sha256'), release, schematic }
  const { key } = workshop.signers
  if (statement === 'provenance.json') return text(await provenance(subject, origin, key), attestationType)
  const extended = await extendedRelease(workshop, release, schematic)
  if (statement === 'spdx.json') return text(await imageSbom({ ...subject, release: extended }), 'application/spdx+json')
  const address = `${origin}/image/${id}/${release.version}/${stem}.vex.json`
  const document = await imageVex(subject, { extended, given: vex, address })
  return statement === 'vex.json' ? Response.json(document) : text(vexAttestation(subject, document, key), attestationType)
}

const attestationType = 'application/vnd.in-toto+json'
const registryVersion = { 'docker-distribution-api-version': 'registry/2.0' }

/** What iPXE runs. */
const bootScript = (base: string, arch: string, parameters: string) =>
  `#!ipxe\nimgfree\nkernel ${base}/kernel-${arch} ${parameters}\ninitrd ${base}/initramfs-${arch}.xz\nboot\n`

async function post({ schematics, log }: FactoryOptions, request: Request): Promise<Response> {
  const schematic = parseSchematic(await bodyOf(request, longestSchematic))
  schematics.add(schematic)
  log.info('schematic posted', { id: schematic.id })
  return Response.json({ id: schematic.id, schematic: schematic.yaml }, { status: 201 })
}

/** The body of a request that posts. Throws FactoryError. */
async function bodyOf(request: Request, longest: number): Promise<Uint8Array> {
  if (request.method !== 'POST') throw new FactoryError(405, `${request.method} is not possible here: use POST`)
  // A browser names the site whose page sent a form: another one has no say in what is kept here.
  if (request.headers.get('sec-fetch-site') === 'cross-site') throw new FactoryError(403, 'the request comes from a page of another site')
  const tooLarge = new FactoryError(413, `a schematic has at most ${longest} bytes`)
  if (Number(request.headers.get('content-length') ?? 0) > longest) throw tooLarge
  try {
    const late = () => new FactoryError(408, `the schematic was not complete within ${bodyLimit / 1000} s`)
    return await within(boundedBody(request, longest), bodyLimit, late)
  } catch (error) {
    throw error instanceof BodyTooLarge ? tooLarge : error
  }
}

/** The token as such, or as the password of a client of registries. Compares without a difference in time. Throws FactoryError. */
function authorize(request: Request, token: string): void {
  const hash = (value: string) => new Bun.CryptoHasher('sha256').update(value).digest()
  const given = request.headers.get('authorization') ?? ''
  if (timingSafeEqual(hash(given), hash(`Bearer ${token}`))) return
  // Browsers and container runtimes have no other form than a name and a password.
  const [, pair = ''] = /^Basic ([A-Za-z0-9+/=]{1,8192})$/i.exec(given) ?? []
  const [, password = ''] = /^[^:]*:(.*)$/s.exec(Buffer.from(pair, 'base64').toString()) ?? []
  if (timingSafeEqual(hash(password), hash(token))) return
  throw new FactoryError(401, 'the header "Authorization: Bearer TOKEN", or the token as a password, is missing or has another token')
}

function refusal({ status, message }: FactoryError): Response {
  const headers = {
    ...{ 'content-type': 'text/plain; charset=utf-8' },
    ...(status === 401 && { 'www-authenticate': 'Basic realm="image factory", charset="UTF-8"' }),
    ...(status === 503 && { 'retry-after': '5' }),
    ...(status === 405 && { allow: 'GET, HEAD, POST' }),
  }
  return new Response(`${message.replaceAll('\n', ' ')}\n`, { status, headers })
}

const pem = (text: string | Uint8Array) => Buffer.from(text)

const text = (content: string, type = 'text/plain; charset=utf-8') => new Response(content, { headers: { 'content-type': type } })
