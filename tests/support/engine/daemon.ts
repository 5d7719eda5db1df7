/**
 * A stand-in for Docker or Podman on a unix socket: it keeps networks and containers, checks every body strictly, and records what it
 * was sent. Its containers run nothing.
 */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as v from 'valibot'
import { ContainerBody, NetworkBody } from './bodies.ts'

interface Call {
  readonly method: string
  readonly path: string
  readonly query: Readonly<Record<string, string>>
  readonly body: unknown
}

interface Kept {
  readonly id: string
  readonly name: string
  readonly body: ContainerBody
  state: string
  exitCode: number
  restarts: number
  log: string
}

/** How the daemon answers. */
export interface DaemonOptions {
  readonly apiVersion?: string
  readonly security?: readonly string[]
  readonly os?: string
  /** Images it has, with the labels of each. */
  readonly images?: Readonly<Record<string, Record<string, string>>>
  /** Images that it can pull. */
  readonly registry?: readonly string[]
  /** The name that loading an archive gives to its image. */
  readonly loads?: string
  /** Podman answers null for what is empty, and names networks in its own order. */
  readonly nulls?: boolean
}

class Refusal extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message)
  }
}

/** A daemon that serves until `stop`. */
export class EngineDaemon {
  readonly socket: string
  readonly calls: Call[] = []
  readonly images: Map<string, Record<string, string>>
  readonly networks = new Map<string, { Id: string; body: v.InferOutput<typeof NetworkBody> }>()
  readonly containers = new Map<string, Kept>()
  readonly #folder = mkdtempSync(join(tmpdir(), 'engine-'))
  readonly #server: { stop(force: boolean): void }
  #next = 1

  constructor(readonly options: DaemonOptions = {}) {
    this.socket = join(this.#folder, 'engine.sock')
    this.images = new Map(Object.entries(options.images ?? {}))
    this.#server = Bun.serve({ unix: this.socket, fetch: (request) => this.#serve(request) })
  }

  stop(): void {
    this.#server.stop(true)
    rmSync(this.#folder, { recursive: true, force: true })
  }

  /** The bodies of requests to a path. */
  bodies(path: string): unknown[] {
    return this.calls.filter((call) => call.path === path).map(({ body }) => body)
  }

  async #serve(request: Request): Promise<Response> {
    const url = new URL(request.url)
    if (url.pathname === '/_ping')
      return new Response('OK', { headers: { 'Api-Version': this.options.apiVersion ?? '1.41', Server: 'Libpod/4.3.1 (linux)' } })
    const [, version, path = ''] = /^\/v([\d.]+)(\/.*)$/.exec(url.pathname) ?? []
    const isJson = request.headers.get('content-type') === 'application/json'
    const body = isJson ? await request.json() : (await request.arrayBuffer()).byteLength
    const query = Object.fromEntries(url.searchParams)
    this.calls.push({ method: request.method, path, query, body })
    try {
      if (version !== (this.options.apiVersion ?? '1.41')) throw new Refusal(400, `client version ${version} is too new`)
      return this.#answer(`${request.method} ${path}`, query, body)
    } catch (error) {
      const status = error instanceof Refusal ? error.status : 400
      return Response.json({ message: (error as Error).message }, { status })
    }
  }

  #answer(what: string, query: Record<string, string>, body: unknown): Response {
    const at = (pattern: RegExp) => pattern.exec(what)?.[1]
    if (what === 'GET /info') return Response.json({ OSType: this.options.os ?? 'linux', SecurityOptions: this.options.security ?? null })
    const image = at(/^GET \/images\/(.+)\/json$/)
    if (image !== undefined) return this.#image(decodeURIComponent(image))
    if (what === 'POST /images/create') return this.#pull(query.fromImage ?? '')
    if (what === 'POST /images/load') return this.#load()
    if (what === 'GET /networks') return Response.json([...this.networks.values()].map(({ Id, body }) => ({ ...body, Id })))
    if (what === 'POST /networks/create') return this.#createNetwork(v.parse(NetworkBody, body))
    const network = at(/^DELETE \/networks\/(.+)$/)
    if (network !== undefined) return this.#removeNetwork(network)
    if (what === 'GET /containers/json') return this.#list(query)
    if (what === 'POST /containers/create') return this.#createContainer(query.name ?? '', v.parse(ContainerBody, body))
    const named = /^(GET|POST|DELETE) \/containers\/([^/]+)(?:\/(\w+))?$/.exec(what)
    if (named) return this.#container(named[1] ?? '', this.#find(named[2] ?? ''), named[3], query)
    throw new Refusal(404, `page not found: ${what}`)
  }

  #image(name: string): Response {
    const labels = this.images.get(name)
    if (!labels) throw new Refusal(404, `${name}: image not known`)
    return Response.json({ Id: `sha256:${name}`, Architecture: 'amd64', Config: { Labels: this.options.nulls ? null : labels } })
  }

  #pull(name: string): Response {
    if (!this.options.registry?.includes(name)) return lines({ status: `Pulling ${name}` }, { error: `manifest for ${name} not found` })
    this.images.set(name, {})
    return lines({ status: `Pulling ${name}` }, { status: 'Downloading', id: 'abc', progressDetail: { current: 1, total: 4 } })
  }

  #load(): Response {
    const name = this.options.loads
    if (name === undefined) return lines({ error: 'payload does not match any of the supported image formats' })
    this.images.set(name, {})
    return lines({ stream: `Loaded image: ${name}\n` })
  }

  #createNetwork(body: v.InferOutput<typeof NetworkBody>): Response {
    if (this.networks.has(body.Name)) throw new Refusal(409, `network with name ${body.Name} already exists`)
    const Id = `n${this.#next++}`
    this.networks.set(body.Name, { Id, body })
    return Response.json({ Id, Warning: '' }, { status: 201 })
  }

  #removeNetwork(id: string): Response {
    const found = [...this.networks.values()].find((one) => one.Id === id || one.body.Name === id)
    if (!found) throw new Refusal(404, `network ${id} not found`)
    if ([...this.containers.values()].some(({ body }) => body.HostConfig.NetworkMode === found.body.Name))
      throw new Refusal(403, `network ${found.body.Name} has active endpoints`)
    this.networks.delete(found.body.Name)
    return new Response(null, { status: 204 })
  }

  #list({ all, filters = '{}' }: Record<string, string>): Response {
    const { label = [] } = v.parse(v.strictObject({ label: v.optional(v.array(v.string())) }), JSON.parse(filters))
    const wanted = label.map((one) => one.split('=') as [string, string])
    const found = [...this.containers.values()].filter(
      ({ body, state }) => (all === 'true' || state === 'running') && wanted.every(([key, value]) => body.Labels[key] === value),
    )
    return Response.json(
      found.map(({ id, name, body, state }) => ({ Id: id, Names: [`/${name}`], Image: body.Image, Labels: body.Labels, State: state })),
    )
  }

  #createContainer(name: string, body: ContainerBody): Response {
    if (!/^[a-zA-Z0-9][\w.-]+$/.test(name)) throw new Refusal(400, `invalid container name ${name}`)
    if ([...this.containers.values()].some((one) => one.name === name)) throw new Refusal(409, `the container name "${name}" is in use`)
    if (!this.images.has(body.Image)) throw new Refusal(404, `no such image: ${body.Image}`)
    for (const network of Object.keys(body.NetworkingConfig.EndpointsConfig))
      if (!this.networks.has(network)) throw new Refusal(404, `network ${network} not found`)
    const id = `c${this.#next++}`
    this.containers.set(id, { id, name, body, state: 'created', exitCode: 0, restarts: 0, log: '' })
    return Response.json({ Id: id, Warnings: [] }, { status: 201 })
  }

  #find(nameOrId: string): Kept {
    const found = this.containers.get(nameOrId) ?? [...this.containers.values()].find(({ name }) => name === nameOrId)
    if (!found) throw new Refusal(404, `no such container: ${nameOrId}`)
    return found
  }

  #container(method: string, kept: Kept, action: string | undefined, query: Record<string, string>): Response {
    if (method === 'GET' && action === 'json')
      return Response.json({
        Id: kept.id,
        State: { Status: kept.state, ExitCode: kept.exitCode, Error: '' },
        RestartCount: kept.restarts,
      })
    if (method === 'GET' && action === 'logs') return new Response(framed(kept.log))
    if (method === 'POST' && (action === 'start' || action === 'stop')) {
      const next = action === 'start' ? 'running' : 'exited'
      const status = kept.state === next ? 304 : 204
      kept.state = next
      return new Response(null, { status })
    }
    if (method === 'DELETE' && action === undefined) {
      if (kept.state === 'running' && query.force !== 'true') throw new Refusal(409, `container ${kept.name} is running`)
      if (query.v !== 'true') throw new Refusal(400, 'its volumes would stay')
      this.containers.delete(kept.id)
      return new Response(null, { status: 204 })
    }
    throw new Refusal(404, 'page not found')
  }
}

const lines = (...all: object[]): Response => new Response(all.map((one) => `${JSON.stringify(one)}\n`).join(''))

/** A console as it goes over the wire: each line as a piece of the second stream, behind a header of eight bytes. */
function framed(text: string): Buffer {
  return Buffer.concat(
    text.split(/(?<=\n)/).map((line) => {
      const header = Buffer.alloc(8)
      header[0] = 2
      header.writeUInt32BE(Buffer.byteLength(line), 4)
      return Buffer.concat([header, Buffer.from(line)])
    }),
  )
}
