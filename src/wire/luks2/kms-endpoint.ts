import { formatHostPort, parseHostPort } from '../host-port.ts'

/** Port where the endpoint has none, as in the client of the field. */
const usualPort = 443

/** The endpoint that stands for the control planes of the cluster. */
export const siblingEndpoint = 'sibling://'

/** Where a KMS is reached. */
export interface KmsEndpoint {
  /** Host and port. */
  readonly address: string
  /** Without TLS: only for a trusted network. */
  readonly plain: boolean
}

/** Whether an endpoint of a scheme is without TLS. */
const plainByScheme = new Map([
  ['grpc', true],
  ['https', false],
])

/**
 * Parses the endpoint of a KMS key: `grpc://host:port` or `host:port`, which are without TLS, and `https://host`; path and query
 * do not matter. Undefined when it is malformed or has another scheme.
 */
export function parseKmsEndpoint(text: string): KmsEndpoint | undefined {
  const [, scheme = 'grpc', authority = ''] = /^(?:([a-z][a-z0-9+.-]*):\/\/)?([^/?#]*)/i.exec(text) ?? []
  const found = parseHostPort(authority, usualPort)
  const plain = plainByScheme.get(scheme.toLowerCase())
  return found && found.port > 0 && plain !== undefined ? { address: formatHostPort(found.host, found.port), plain } : undefined
}
