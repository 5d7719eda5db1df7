/** The URL of a management server, as the configuration or the kernel parameter `siderolink.api` gives it. */
import { DecodeError } from '../../wire/decode-error.ts'
import { bracketed, unbracketed } from '../../wire/host-port.ts'

/** The parts of the URL. */
export interface ApiUrl {
  /** Host and port, for the gRPC client. */
  readonly address: string
  readonly host: string
  /** Without TLS. */
  readonly plain: boolean
  /** Empty for none. */
  readonly joinToken: string
  /** WireGuard's datagrams go through the API. */
  readonly tunnel: boolean
}

/** Values of `grpc_tunnel` that ask for the tunnel. */
const affirmative = new Set(['true', 'y'])

/** Parses the URL; without a scheme it is `grpc`, which is without TLS. Throws DecodeError. */
export function parseApiUrl(text: string): ApiUrl {
  const whole = text.includes('://') ? text : `grpc://${text}`
  const url = URL.canParse(whole) ? new URL(whole) : undefined
  const host = unbracketed(url?.hostname ?? '')
  if (!url || host === '') throw new DecodeError('URL of the management server', 0, 'use https://HOST[:PORT] or grpc://HOST:PORT')
  const plain = url.protocol === 'grpc:'
  const port = url.port || (plain ? '' : '443')
  if (port === '') throw new DecodeError('URL of the management server', 0, 'grpc:// needs a port')
  return {
    address: `${bracketed(host)}:${port}`,
    host,
    plain,
    joinToken: url.searchParams.get('jointoken') ?? '',
    tunnel: affirmative.has(url.searchParams.get('grpc_tunnel') ?? ''),
  }
}
