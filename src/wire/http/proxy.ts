/**
 * Which proxy a request goes through, by the variables HTTP_PROXY, HTTPS_PROXY and NO_PROXY. The rules are those of Go's
 * golang.org/x/net/http/httpproxy, so that the programs of the image and this one decide alike.
 */
import { splitHostPort, unbracketed } from '../host-port.ts'
import { parseIp } from '../ip.ts'
import { containsAddress, tryPrefix } from '../prefix.ts'

/** The three variables; undefined and empty are alike. */
export interface ProxyVariables {
  readonly http?: string | undefined
  readonly https?: string | undefined
  /** Hosts that are reached directly: names with their subdomains, addresses, networks, each with an optional port, or `*`. */
  readonly none?: string | undefined
}

/** Reads the variables, upper case before lower case. */
export function proxyVariables(environment: Readonly<Record<string, string | undefined>>): ProxyVariables {
  const value = (name: string) => environment[name] || environment[name.toLowerCase()]
  return { http: value('HTTP_PROXY'), https: value('HTTPS_PROXY'), none: value('NO_PROXY') }
}

/** The proxy for a URL with scheme http or https; undefined when it is reached directly. Throws when the variable is no URL. */
export function proxyFor({ http, https, none = '' }: ProxyVariables, url: URL): URL | undefined {
  const given = url.protocol === 'https:' ? https : url.protocol === 'http:' ? http : undefined
  if (!given || !isProxied(none, url)) return undefined
  return proxyUrl(given)
}

/** As written, or with the scheme http when there is none. */
function proxyUrl(text: string): URL {
  for (const candidate of text.includes('://') ? [text] : [text, `http://${text}`]) {
    if (!URL.canParse(candidate)) continue
    const url = new URL(candidate)
    if (url.host !== '' && /^(https?|socks5h?):$/.test(url.protocol)) return url
  }
  // The URL may hold a password, so it is not shown.
  throw new Error('invalid proxy: expected a URL such as http://proxy.example.com:3128')
}

function isProxied(none: string, url: URL): boolean {
  const host = unbracketed(url.hostname).toLowerCase()
  const port = url.port || (url.protocol === 'https:' ? '443' : '80')
  if (host === 'localhost' || isLoopback(host)) return false
  return !none.split(',').some((entry) => matches(entry.trim().toLowerCase(), host, port))
}

const isIp = (text: string) => parseIp(text) !== undefined

const loopback = ['127.0.0.0/8', '::1/128']
const isLoopback = (host: string) => isIp(host) && loopback.some((network) => isWithin(network, host))

/** The port of an entry of NO_PROXY without one. */
const anyPort = -1

/** Whether an entry of NO_PROXY names the host. */
function matches(entry: string, host: string, port: string): boolean {
  if (entry === '') return false
  if (entry === '*') return true
  if (entry.includes('/') && tryPrefix(entry)) return isIp(host) && isWithin(entry, host)
  const { host: name, port: only } = splitHostPort(entry, anyPort)
  if (name === '' || (only !== anyPort && String(only) !== port)) return false
  if (isIp(name)) return isIp(host) && isWithin(`${name}/${name.includes(':') ? 128 : 32}`, host)
  // `.example.com` and `*.example.com` are the subdomains alone, `example.com` is the name too.
  const suffix = name.startsWith('*.') ? name.slice(1) : name
  return suffix.startsWith('.') ? host.endsWith(suffix) : host === suffix || host.endsWith(`.${suffix}`)
}

function isWithin(network: string, address: string): boolean {
  const prefix = tryPrefix(network)
  return prefix !== undefined && containsAddress(prefix, address)
}
