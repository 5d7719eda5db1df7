import type { Target } from '../rpc/client/dial.ts'
import { type ProxyVariables, proxyFor, proxyVariables } from '../wire/http/proxy.ts'

/** Where the settings come from; read again for every request, so that a change acts without a restart. */
export interface OutboundSettings {
  /** PEM of the public authorities. */
  readonly publicRoots: string
  /** PEM of the authorities that the configuration adds; empty when it adds none. */
  addedRoots(): string
  /** The operator's variables, as `NAME=value`. */
  variables(): readonly string[]
}

/** Credentials and authorities for one server. */
export type OutboundTls = Pick<Bun.TLSOptions, 'cert' | 'key' | 'rejectUnauthorized'> & {
  /** PEM of authorities that are trusted for this server besides all others. */
  readonly ca?: string
}

/** A request of init to another machine. */
export type OutboundFetch = (url: string | URL, init?: RequestInit & { tls?: OutboundTls }) => Promise<Response>

/**
 * How init reaches servers outside of the cluster: with the authorities and through the proxy of the machine configuration.
 * Connections between the nodes of a cluster, to its API server and to the metadata service of a platform go directly.
 */
export class Outbound {
  readonly #settings: OutboundSettings

  constructor(settings: OutboundSettings) {
    this.#settings = settings
  }

  /** fetch with the configured authorities and proxy. Throws for a proxy that is no HTTP proxy. */
  readonly fetch: OutboundFetch = async (url, { tls, ...init } = {}) => {
    const proxy = this.proxy(new URL(url))
    return fetch(url, { ...init, ...this.#tls(tls), ...(proxy && { proxy: proxy.href }) } as RequestInit)
  }

  /** The gRPC server at `address` (host:port, by default 443), over TLS unless `plain`. */
  target(address: string, { plain = false } = {}): Target {
    const proxy = this.proxy(new URL(`${plain ? 'http' : 'https'}://${address}`))
    return {
      address,
      defaultPort: plain ? 80 : 443,
      ...(!plain && { tls: { ca: this.roots() } }),
      ...(proxy && { proxy: proxy.href }),
    }
  }

  /** PEM of all trusted authorities. */
  roots(): string {
    const { publicRoots, addedRoots } = this.#settings
    const added = addedRoots()
    return added === '' ? publicRoots : `${publicRoots}\n${added}`
  }

  /** The proxy for a URL. */
  proxy(url: URL): URL | undefined {
    const proxy = proxyFor(this.#variables(), url)
    if (proxy && !/^https?:$/.test(proxy.protocol)) throw new Error(`proxy has scheme "${proxy.protocol.slice(0, -1)}": use http or https`)
    return proxy
  }

  #variables(): ProxyVariables {
    return proxyVariables(
      Object.fromEntries(
        this.#settings.variables().map((variable) => {
          const at = variable.indexOf('=')
          return [variable.slice(0, at), variable.slice(at + 1)]
        }),
      ),
    )
  }

  #tls(given: OutboundTls | undefined): { tls?: OutboundTls } {
    // Without additions fetch knows the public ones by itself.
    if (!given?.ca && this.#settings.addedRoots() === '') return given ? { tls: given } : {}
    return { tls: { ...given, ca: [this.roots(), ...(given?.ca ? [given.ca] : [])].join('\n') } }
  }
}
