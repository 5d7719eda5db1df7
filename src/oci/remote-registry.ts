/**
 * A client of image registries (OCI distribution specification): reads manifests and blobs, from mirrors first, and checks
 * all bytes against their digest. It authenticates with a token of the registry's authority, or with a password.
 */
import { createHash } from 'node:crypto'
import * as v from 'valibot'
import type { StatusName } from '../rpc/status.ts'
import { within } from '../timing/within.ts'
import { apiStatus } from '../wire/api-status.ts'
import { messageOf } from '../wire/error-message.ts'
import { formatReference, type Reference } from './reference.ts'

/** A host that may have an image. */
export interface RegistryHost {
  /** As `https://registry.test`; `/v2` is added unless the path is the registry's own. */
  readonly url: string
  readonly overridePath?: boolean
  readonly tls?: { readonly ca?: string; readonly cert?: string; readonly key?: string; readonly rejectUnauthorized?: boolean } | undefined
}

/** Options of the client. */
export interface RemoteRegistryOptions {
  /** The hosts to try for a registry, in order. */
  readonly hosts: (domain: string) => readonly RegistryHost[]
  /** Milliseconds that a body may stall. Default: 30 s. */
  readonly idle?: number
  /** Default: fetch of the runtime. */
  readonly fetch?: (url: string, init: RequestInit & { tls?: NonNullable<RegistryHost['tls']> }) => Promise<Response>
  readonly credentials?: (host: string) => { username: string; password: string } | undefined
  readonly signal?: AbortSignal
}

/** A manifest as received. */
export interface RemoteManifest {
  readonly digest: string
  readonly mediaType: string
  readonly bytes: Uint8Array
}

/** What went wrong, and its status. */
const statuses = { missing: 'NotFound', refused: 'PermissionDenied', unreachable: 'Unavailable', broken: 'DataLoss' } as const

/** A registry could not or would not deliver. */
export class RegistryError extends Error {
  override name = 'RegistryError'
  constructor(
    message: string,
    readonly reason: keyof typeof statuses,
  ) {
    super(message)
  }

  get [apiStatus](): StatusName {
    return statuses[this.reason]
  }
}

const maxManifest = 4 << 20
const maxToken = 64 << 10
const timeout = 30_000
const manifestTypes = [
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
  'application/vnd.docker.distribution.manifest.v2+json',
].join(', ')

/** The host of a registry, by the name in references. */
const hostOf = (domain: string): string => (domain === 'docker.io' ? 'registry-1.docker.io' : domain)

/** The hosts of a registry without mirrors. */
export function directHosts(domain: string, insecure = false): RegistryHost[] {
  const host = hostOf(domain)
  const local = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?$/.test(host)
  const tls = insecure ? { rejectUnauthorized: false } : undefined
  return local || insecure ? [{ url: `https://${host}`, tls }, { url: `http://${host}` }] : [{ url: `https://${host}` }]
}

/** Reads from registries. */
export class RemoteRegistry {
  readonly #options: RemoteRegistryOptions
  readonly #authorizations = new Map<string, string>()

  constructor(options: RemoteRegistryOptions) {
    this.#options = options
  }

  /** The manifest of a reference of at most so many bytes; with a digest exactly that one. Throws RegistryError. */
  async manifest(reference: Reference, limit = maxManifest): Promise<RemoteManifest> {
    const name = reference.digest ?? reference.tag ?? 'latest'
    const response = await this.#get(reference, `manifests/${name}`, manifestTypes)
    const bytes = await this.#whole(response, limit)
    const digest = sha256(bytes)
    if (reference.digest && reference.digest !== digest)
      throw new RegistryError(`manifest of "${formatReference(reference)}" does not match: its digest is ${digest}`, 'broken')
    const [mediaType = ''] = (response.headers.get('content-type') ?? '').split(';')
    return { digest, mediaType: mediaType.trim(), bytes }
  }

  /** The index of the manifests that refer to a digest (OCI distribution specification 1.1), its first page. Throws RegistryError. */
  async referrers(reference: Reference & { digest: string }): Promise<Uint8Array> {
    return this.#whole(await this.#get(reference, `referrers/${reference.digest}`, manifestTypes), maxManifest)
  }

  /** The bytes of a blob as they arrive; the last chunk is yielded only after the digest was verified. */
  async *blob(reference: Reference, digest: string): AsyncGenerator<Uint8Array> {
    const response = await this.#get(reference, `blobs/${digest}`, 'application/octet-stream, */*')
    const hash = createHash('sha256')
    let held: Uint8Array | undefined
    for await (const chunk of this.#pieces(response)) {
      hash.update(chunk)
      if (held) yield held
      held = chunk
    }
    if (`sha256:${hash.digest('hex')}` !== digest) throw new RegistryError(`blob ${digest} does not match its digest`, 'broken')
    if (held) yield held
  }

  /** A small blob as a whole. */
  async smallBlob(reference: Reference, digest: string, limit = maxManifest): Promise<Uint8Array> {
    const parts: Uint8Array[] = []
    let size = 0
    for await (const part of this.blob(reference, digest)) {
      size += part.length
      if (size > limit) throw new RegistryError(`blob ${digest} is larger than ${limit} bytes`, 'broken')
      parts.push(part)
    }
    return Buffer.concat(parts)
  }

  /** Queries the hosts in order until one has it. Throws the error of the last one, the registry itself, unless another denied access. */
  async #get(reference: Reference, path: string, accept: string): Promise<Response> {
    let last = new RegistryError(`no registry is known for "${reference.domain}"`, 'unreachable')
    for (const host of this.#options.hosts(reference.domain)) {
      try {
        return await this.#ask(host, reference, path, accept)
      } catch (error) {
        if (!(error instanceof RegistryError) || this.#options.signal?.aborted) throw error
        // What exists is known by the registry: a mirror may lack it, and its word does not stand for one that is down.
        if (last.reason !== 'refused') last = error
      }
    }
    throw last
  }

  async #ask(host: RegistryHost, reference: Reference, path: string, accept: string): Promise<Response> {
    const base = host.overridePath ? host.url.replace(/\/$/, '') : `${host.url.replace(/\/$/, '')}/v2`
    // Only a mirror has to know which registry is meant.
    const namespace = new URL(host.url).host === hostOf(reference.domain) ? '' : `?ns=${encodeURIComponent(reference.domain)}`
    const url = `${base}/${reference.repository}/${path}${namespace}`
    const scope = `${host.url} ${reference.repository}`
    const known = this.#authorizations.get(scope)
    let response = await this.#fetch(host, url, { accept, ...(known && { authorization: known }) })
    // Without a token, or with an expired one: get a new token, once.
    if (response.status === 401) {
      this.#authorizations.delete(scope)
      const challenge = response.headers.get('www-authenticate') ?? ''
      await response.body?.cancel()
      const authorization = await this.#authorize(host, challenge, reference.repository)
      if (authorization) {
        this.#authorizations.set(scope, authorization)
        response = await this.#fetch(host, url, { accept, authorization })
      }
    }
    if (response.ok) return response
    await response.body?.cancel()
    const what = `${new URL(host.url).host}: ${path} of "${reference.repository}"`
    if (response.status === 404) throw new RegistryError(`${what} not found`, 'missing')
    if (response.status === 401 || response.status === 403)
      throw new RegistryError(`${what} access denied: sign in to the registry`, 'refused')
    throw new RegistryError(`${what}: the registry responded with status ${response.status}`, 'unreachable')
  }

  async #fetch(host: RegistryHost, url: string, headers: Record<string, string>): Promise<Response> {
    const { signal, fetch: request = fetch } = this.#options
    const stop = new AbortController()
    const timer = setTimeout(() => stop.abort(new Error(`no answer within ${timeout / 1000} s`)), timeout)
    try {
      return await request(url, {
        headers,
        signal: AbortSignal.any([stop.signal, ...(signal ? [signal] : [])]),
        ...(host.tls && { tls: host.tls }),
      })
    } catch (error) {
      signal?.throwIfAborted()
      throw new RegistryError(`${new URL(host.url).host}: ${messageOf(error)}`, 'unreachable')
    } finally {
      clearTimeout(timer)
    }
  }

  /** The body as it arrives; fails when the registry stops sending. */
  async *#pieces(response: Response): AsyncGenerator<Uint8Array> {
    const { signal, idle = timeout } = this.#options
    const { host } = new URL(response.url)
    const reader = response.body?.getReader()
    try {
      for (;;) {
        const piece = reader && (await within(reader.read(), idle, () => new Error(`no data received within ${idle / 1000} s`)))
        if (!piece || piece.done) return
        yield piece.value
      }
    } catch (error) {
      signal?.throwIfAborted()
      throw new RegistryError(`${host}: transfer interrupted: ${messageOf(error)}`, 'unreachable')
    } finally {
      await reader?.cancel().catch(() => {}) // the consumer may stop before the end
    }
  }

  async #whole(response: Response, limit: number): Promise<Uint8Array> {
    const parts: Uint8Array[] = []
    let size = 0
    for await (const part of this.#pieces(response)) {
      size += part.length
      if (size > limit) throw new RegistryError(`the response of "${new URL(response.url).host}" is larger than ${limit} bytes`, 'broken')
      parts.push(part)
    }
    return Buffer.concat(parts)
  }

  /** Answers a registry's challenge (RFC 6750, RFC 7617); undefined when there are no credentials for it. */
  async #authorize(host: RegistryHost, challenge: string, repository: string): Promise<string | undefined> {
    const known = this.#options.credentials?.(new URL(host.url).host)
    const basic = known && `Basic ${Buffer.from(`${known.username}:${known.password}`).toString('base64')}`
    if (/^basic/i.test(challenge)) return basic
    if (!/^bearer/i.test(challenge)) return undefined
    const parameters: Record<string, string> = {}
    for (const [, name = '', value = ''] of challenge.matchAll(/(\w+)="([^"]*)"/g)) parameters[name] = value
    if (!parameters.realm || !URL.canParse(parameters.realm)) return undefined
    const realm = new URL(parameters.realm)
    // A password is sent only over a connection as secure as the registry's own.
    if (realm.protocol !== 'https:' && new URL(host.url).protocol === 'https:') return undefined
    if (parameters.service) realm.searchParams.set('service', parameters.service)
    realm.searchParams.set('scope', parameters.scope ?? `repository:${repository}:pull`)
    const response = await this.#fetch(host, realm.href, basic ? { authorization: basic } : {})
    if (!response.ok) {
      await response.body?.cancel()
      throw new RegistryError(`${realm.host} issues no token: status ${response.status}`, 'refused')
    }
    const { token, access_token: access } = tokensOf(await this.#whole(response, maxToken), realm.host)
    return token || access ? `Bearer ${token || access}` : undefined
  }
}

const tokens = v.object({ token: v.optional(v.string()), access_token: v.optional(v.string()) })

function tokensOf(bytes: Uint8Array, host: string): v.InferOutput<typeof tokens> {
  try {
    return v.parse(tokens, JSON.parse(Buffer.from(bytes).toString()))
  } catch {
    throw new RegistryError(`the token of "${host}" has an unexpected format`, 'broken')
  }
}

function sha256(bytes: Uint8Array): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`
}
