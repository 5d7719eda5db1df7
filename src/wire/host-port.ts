/** Host and port in one string: `10.0.0.1:6443`, `[fd00::1]:6443`, `example.org:443`. */
import { parseIp } from './ip.ts'

/** A host name or address, IPv6 without brackets, and a port. */
export interface HostPort {
  readonly host: string
  readonly port: number
}

/** Splits `host`, `host:port`, `[v6]`, `[v6]:port` or a bare IPv6 address; undefined when it is none of these. */
function split(text: string): { host: string; port: number | undefined } | undefined {
  const [match, six, name = '', port] = /^(?:\[([^\][\s/]+)\]|([^\][\s/:]*))(?::(\d{1,5}))?$/.exec(text) ?? []
  if (match !== undefined) return { host: six ?? name, port: port === undefined ? undefined : Number(port) }
  return parseIp(text) ? { host: text, port: undefined } : undefined
}

/** Host and port; without a port the default one. Undefined when it is malformed. */
export function parseHostPort(text: string, defaultPort?: number): HostPort | undefined {
  const { host = '', port = defaultPort } = split(text) ?? {}
  return host !== '' && port !== undefined && port < 65_536 ? { host, port } : undefined
}

/** Host and port of what may be a host alone, which it is taken for when it is malformed. */
export function splitHostPort(text: string, defaultPort: number): HostPort {
  const { host, port = defaultPort } = split(text) ?? { host: text }
  return { host, port }
}

/** The bytes of an address, and its port, which must be there; undefined when it is malformed. */
export function parseIpPort(text: string): { address: Uint8Array; port: number } | undefined {
  const { host = '', port = 0 } = parseHostPort(text) ?? {}
  const address = parseIp(host)
  return address && { address, port }
}

/** Host and port as one string, IPv6 in brackets. */
export const formatHostPort = (host: string, port: number): string => `${bracketed(host)}:${port}`

/** A host as URLs have it: IPv6 in brackets. */
export const bracketed = (host: string): string => (host.includes(':') && !host.startsWith('[') ? `[${host}]` : host)

/** A host without the brackets that it has in a URL. */
export const unbracketed = (host: string): string => host.replace(/^\[(.*)\]$/, '$1')

/** Host and port of a URL; without a port the default one. Undefined when there is none, or it is malformed. */
export function hostPortOfUrl(url: string | undefined, defaultPort = 443): HostPort | undefined {
  const { hostname = '', port = '' } = URL.parse(url ?? '') ?? {}
  return hostname === '' ? undefined : { host: unbracketed(hostname), port: port === '' ? defaultPort : Number(port) }
}
