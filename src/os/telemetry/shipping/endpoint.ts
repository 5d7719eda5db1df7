import { formatHostPort, hostPortOfUrl } from '../../../wire/host-port.ts'

/** Where lines are sent, and how. */
export interface Endpoint {
  readonly protocol: 'tcp' | 'udp' | 'tls'
  readonly host: string
  readonly port: number
  /** Its URL without path and credentials. */
  readonly url: string
}

/** The endpoint of a URL such as `tcp://10.0.0.1:514`. Throws for one that has no host, no port or another scheme. */
export function endpointOf(text: string): Endpoint {
  const scheme = URL.parse(text)?.protocol.slice(0, -1)
  const protocol = (['tcp', 'udp', 'tls'] as const).find((known) => known === scheme)
  const { host, port } = hostPortOfUrl(text, 0) ?? { host: '', port: 0 }
  if (!protocol || !port) throw new Error(`"${text}" is no destination of logs: give it as "tcp://host:port"`)
  return { protocol, host, port, url: `${protocol}://${formatHostPort(host, port)}` }
}
