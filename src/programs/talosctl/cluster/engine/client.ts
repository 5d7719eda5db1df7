/**
 * A client of the Docker Engine API (docs.docker.com/reference/api/engine), which Podman serves as well, over a unix socket.
 * Every request has a deadline and every answer a bound.
 */

import * as v from 'valibot'
import { errnoOf } from '../../../../wire/errno.ts'
import { messageOf } from '../../../../wire/error-message.ts'
import { BodyTooLarge, boundedBody } from '../../../../wire/http/bounded-body.ts'
import { UsageError } from '../../failure.ts'

/** The newest version of the API that is known here; an older engine is spoken to in its own. */
const newest: Version = [1, 51]
/** The first version in which a container can be given tmpfs, volumes and an address as is done here. */
const oldest: Version = [1, 40]

type Version = readonly [number, number]

/** Milliseconds for a request, unless it is one that pulls, loads or stops. */
const usualDeadline = 120_000
/** Bytes of an answer. */
const limits = { answer: 8 << 20, error: 64 << 10, line: 256 << 10 }

/** The engine refused a request. */
export class EngineError extends Error {
  override name = 'EngineError'
  constructor(
    /** Status of HTTP. */
    readonly status: number,
    message: string,
  ) {
    super(message)
  }
}

/** How a request is sent. */
export interface RequestOptions {
  readonly query?: Readonly<Record<string, string>>
  /** An object is sent as JSON, a file as it is. */
  readonly body?: object | Blob
  /** Milliseconds until the whole answer must have arrived. */
  readonly deadline?: number
}

const ErrorBody = v.object({ message: v.string() })

/** An engine that answers. */
export class Engine {
  readonly #prefix: string

  private constructor(
    readonly socket: string,
    version: Version,
    /** What the engine calls itself, as in `Docker/28.1.1 (linux)`; empty when it does not. */
    readonly name: string,
    readonly signal: AbortSignal,
  ) {
    this.#prefix = `/v${version.join('.')}`
  }

  /** Connects to the engine behind a socket. `signal` aborts its requests. */
  static async open(socket: string, signal: AbortSignal): Promise<Engine> {
    const answer = await send(socket, 'GET', '/_ping', { signal, deadline: 10_000 })
    const offered = answer.headers.get('api-version') ?? ''
    await answer.body?.cancel()
    const [, major, minor] = (/^(\d{1,4})\.(\d{1,4})$/.exec(offered) ?? []).map(Number)
    if (!answer.ok || major === undefined || minor === undefined)
      throw new UsageError(`"${socket}" is not the socket of a container engine: name another with DOCKER_HOST=unix:///path`)
    if (compare([major, minor], oldest) < 0)
      throw new UsageError(
        `the engine at "${socket}" serves version ${offered} of its API, ${oldest.join('.')} is needed: update the engine`,
      )
    return new Engine(socket, compare([major, minor], newest) < 0 ? [major, minor] : newest, answer.headers.get('server') ?? '', signal)
  }

  /** Sends a request and returns its answer, checked. Throws EngineError for a status that is no success. */
  async request<Schema extends v.GenericSchema>(
    method: 'GET' | 'POST',
    path: string,
    schema: Schema,
    options: RequestOptions = {},
  ): Promise<v.InferOutput<Schema>> {
    const answer = await this.#send(method, path, options)
    const text = (await body(answer, limits.answer, `${method} ${path}`)).toString()
    const result = v.safeParse(v.pipe(v.string(), v.parseJson(), schema), text)
    if (!result.success) throw new Error(`${method} ${path}: the engine's answer is not understood: ${result.issues[0].message}`)
    return result.output
  }

  /** Sends a request whose answer has no content. */
  async perform(method: 'POST' | 'DELETE', path: string, options: RequestOptions = {}): Promise<void> {
    const answer = await this.#send(method, path, options)
    await answer.body?.cancel()
  }

  /** The bytes of an answer, of at most `limit`. */
  async bytes(path: string, limit: number, options: RequestOptions = {}): Promise<Buffer> {
    return body(await this.#send('GET', path, options), limit, `GET ${path}`)
  }

  /** The lines of JSON of an answer, as they arrive. */
  async *lines(path: string, options: RequestOptions): AsyncGenerator<unknown, void> {
    const answer = await this.#send('POST', path, options)
    const decoder = new TextDecoder()
    let rest = ''
    for await (const chunk of answer.body ?? []) {
      rest += decoder.decode(chunk, { stream: true })
      const whole = rest.split('\n')
      rest = whole.pop() ?? ''
      if (rest.length > limits.line) throw new Error(`POST ${path}: the engine's answer has a line of more than ${limits.line} bytes`)
      for (const line of whole) if (line.trim() !== '') yield JSON.parse(line)
    }
    if (rest.trim() !== '') yield JSON.parse(rest)
  }

  async #send(method: string, path: string, { query = {}, deadline = usualDeadline, ...options }: RequestOptions): Promise<Response> {
    const parameters = new URLSearchParams(query).toString()
    const answer = await send(this.socket, method, `${this.#prefix}${path}${parameters && `?${parameters}`}`, {
      ...options,
      deadline,
      signal: this.signal,
    })
    // 304: the container is started or stopped already.
    if (answer.ok || answer.status === 304) return answer
    const text = (await body(answer, limits.error, `${method} ${path}`)).toString()
    const result = v.safeParse(v.pipe(v.string(), v.parseJson(), ErrorBody), text)
    throw new EngineError(answer.status, result.success ? result.output.message : `${method} ${path}: status ${answer.status}`)
  }
}

async function send(
  socket: string,
  method: string,
  path: string,
  { body, deadline, signal }: { body?: object | Blob; deadline: number; signal: AbortSignal },
): Promise<Response> {
  const late = AbortSignal.timeout(deadline)
  const json = body !== undefined && !(body instanceof Blob)
  try {
    return await fetch(`http://localhost${path}`, {
      unix: socket,
      method,
      signal: AbortSignal.any([signal, late]),
      redirect: 'error',
      ...(json && { headers: { 'content-type': 'application/json' } }),
      ...(body !== undefined && { body: json ? JSON.stringify(body) : body }),
    })
  } catch (error) {
    signal.throwIfAborted()
    const what = `${method} ${path.split('?')[0]}`
    if (late.aborted) throw new Error(`the container engine at "${socket}" did not answer ${what} within ${deadline / 1000} s`)
    const reason = errnoOf(error) ?? messageOf(error)
    throw new Error(`the container engine at "${socket}" does not answer ${what}: ${reason}: start it, or change DOCKER_HOST`)
  }
}

async function body(answer: Response, limit: number, what: string): Promise<Buffer> {
  try {
    return await boundedBody(answer, limit)
  } catch (error) {
    throw error instanceof BodyTooLarge ? new Error(`${what}: the engine's answer is larger than ${limit} bytes`) : error
  }
}

const compare = (one: Version, other: Version): number => one[0] - other[0] || one[1] - other[1]
