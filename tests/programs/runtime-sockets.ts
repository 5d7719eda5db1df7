/**
 * The runtime's sockets in a test: each use of one can fail as the kernel or the other side would make it fail. They are replaced
 * where the runtime has them, so that no code opens a socket beside them; node:net opens its sockets there too.
 */

/** Takes the name of a use (`connect /run/one.sock`), and decides whether it fails. */
export type FailsSocket = (use: string) => boolean

/** Where sockets lead. */
export interface Routes {
  /** The path of a unix socket in the place of this one. */
  unix?(path: string): string
  /** The address in the place of this one. */
  tcp?(address: Address): Address
  /** The URL in the place of this one. */
  url?(url: string): string
}

interface Address {
  readonly hostname: string
  readonly port: number
}

type Any = (...args: any[]) => any
interface Options extends Partial<Address> {
  readonly unix?: string
  readonly connect?: Address
  readonly socket?: Record<string, Any | undefined>
}
interface Opened {
  write: Any
  terminate(): void
}

interface Sending {
  send: Any
}

/** An address of no host: binding it fails. */
const unavailable = '203.0.113.1'
/** A port where nothing listens, and a path where nothing is: connecting fails. */
const refusing: Address = { hostname: '127.0.0.1', port: 1 }
const nowhere = '/proc/nowhere/socket'

const real = { listen: Bun.listen, connect: Bun.connect, serve: Bun.serve, udpSocket: Bun.udpSocket, fetch: globalThis.fetch } as Record<
  string,
  Any
>

/** Replaces the runtime's sockets until they are put back with `restoreSockets`. */
export function replaceSockets(fails: FailsSocket, routes: Routes = {}): void {
  const { unix = (path) => path, tcp = (address) => address, url = (text) => text } = routes
  const routed = (options: Options): Options => {
    if (options.unix !== undefined) return { ...options, unix: unix(options.unix) }
    const { hostname, port } = options
    return hostname === undefined || port === undefined ? options : { ...options, ...tcp({ hostname, port }) }
  }
  const replaced: Record<string, Any> = {
    listen(options: Options) {
      const name = nameOf(options)
      if (fails(`listen ${name}`))
        return real.listen!(options.unix === undefined ? { ...options, hostname: unavailable } : atNowhere(options))
      return real.listen!({ ...routed(options), socket: handlers(options, fails, { opened: 'accept', data: 'request', write: 'reply' }) })
    },
    connect(options: Options) {
      const name = nameOf(options)
      if (fails(`connect ${name}`)) return real.connect!(options.unix === undefined ? { ...options, ...refusing } : atNowhere(options))
      return real.connect!({ ...routed(options), socket: handlers(options, fails, { opened: 'open', data: 'read', write: 'write' }) })
    },
    serve: (options: Options) => real.serve!(fails(`serve ${nameOf(options)}`) ? { ...options, hostname: unavailable } : routed(options)),
    udpSocket(options: Options) {
      const name = nameOf(options.connect ?? options)
      if (fails(`udp ${name}`)) return real.udpSocket!({ ...options, hostname: unavailable })
      return real.udpSocket!({ ...routed(options), ...(options.connect && { connect: tcp(options.connect) }) }).then((socket: Sending) => {
        const send = socket.send
        socket.send = (...args) => {
          if (fails(`send ${name}`)) throw Object.assign(new Error('ENETUNREACH: network is unreachable, send'), { code: 'ENETUNREACH' })
          return send.apply(socket, args)
        }
        return socket
      })
    },
    async fetch(from: string | URL, init?: RequestInit) {
      const { protocol, host, pathname } = new URL(from)
      const name = `${protocol}//${host}${pathname}`
      if (fails(`fetch ${name}`)) return real.fetch!(`${protocol}//${refusing.hostname}:${refusing.port}/`, init)
      const response: Response = await real.fetch!(url(String(from)), init)
      return response.body && fails(`body ${name}`) ? cut(response, response.body) : response
    },
  }
  const { fetch, ...ofRuntime } = replaced
  Object.assign(Bun, ofRuntime)
  globalThis.fetch = fetch as typeof globalThis.fetch
}

/** Gives the runtime its own sockets again. */
export function restoreSockets(): void {
  const { fetch, ...ofRuntime } = real
  Object.assign(Bun, ofRuntime)
  globalThis.fetch = fetch as typeof globalThis.fetch
}

const nameOf = ({ unix, hostname = '', port = 0 }: Options): string => unix ?? `${hostname}:${port}`
const atNowhere = (options: Options): Options => ({ ...options, unix: nowhere })

/** The handlers of a socket whose connection is reset when it is opened, in the middle of what arrives, or by what is sent. */
function handlers(options: Options, fails: FailsSocket, uses: Record<'opened' | 'data' | 'write', string>): Options['socket'] {
  const { socket: own = {} } = options
  const name = nameOf(options)
  return {
    ...own,
    open(socket: Opened) {
      const write = socket.write
      socket.write = (...args) => {
        if (!fails(`${uses.write} ${name}`)) return write.apply(socket, args)
        setImmediate(() => socket.terminate())
        return 0
      }
      own.open?.(socket)
      if (fails(`${uses.opened} ${name}`)) socket.terminate()
    },
    data(socket: Opened, chunk: Buffer) {
      if (!fails(`${uses.data} ${name}`)) return own.data?.(socket, chunk)
      own.data?.(socket, chunk.subarray(0, chunk.length >> 1))
      socket.terminate()
    },
  }
}

/** A response that is reset in the middle. */
function cut(response: Response, body: ReadableStream<Uint8Array>): Response {
  const half = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      controller.enqueue(chunk.subarray(0, chunk.length >> 1))
      controller.error(Object.assign(new Error('The socket connection was closed unexpectedly.'), { code: 'ECONNRESET' }))
    },
  })
  const { status, headers } = response
  return new Response(body.pipeThrough(half), { status, headers })
}

/** Which use of which name fails, counted from one. */
export type Fails = (use: string, nth: number) => boolean

/** Counts uses, and fails those that are chosen. */
export class SocketFaults {
  /** How often each use was made. */
  readonly uses = new Map<string, number>()
  /** The uses that failed. */
  fired: string[] = []
  #chosen: Fails | undefined

  /** Fails these uses from now on, counted from one again; without any, none. */
  choose(fails?: Fails): void {
    this.#chosen = fails
    if (!fails) return
    this.uses.clear()
    this.fired = []
  }

  readonly fails: FailsSocket = (use) => {
    const nth = (this.uses.get(use) ?? 0) + 1
    this.uses.set(use, nth)
    if (!this.#chosen?.(use, nth)) return false
    this.fired.push(use)
    return true
  }
}
