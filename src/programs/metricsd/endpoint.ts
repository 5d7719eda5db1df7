import { readFileSync } from 'node:fs'
import * as v from 'valibot'
import { splitHostPort } from '../../wire/host-port.ts'

const endpoint = v.object({ listen: v.string(), clientCA: v.string(), tokenDigest: v.string() })

/** Where metrics are served, and for whom. */
export interface Endpoint {
  readonly host: string
  readonly port: number
  /** PEM of the authorities of clients, if certificates are admitted. */
  readonly clientCA?: string
  /** SHA-256 of the token, if one is admitted. */
  readonly tokenDigest?: Buffer
}

/** Reads the declaration that init has written. */
export function endpointIn(path: string): Endpoint {
  const { listen, clientCA, tokenDigest } = v.parse(endpoint, JSON.parse(readFileSync(path, 'utf8')))
  return {
    ...splitHostPort(listen, 9100),
    ...(clientCA !== '' && { clientCA }),
    ...(tokenDigest !== '' && { tokenDigest: Buffer.from(tokenDigest, 'hex') }),
  }
}
