/** Client configurations: endpoints, nodes and the client's certificate. */
import { newCertificate, toBase64, year } from '../../../pki/certificate.ts'
import { pemOf, type SecretsBundle } from './secrets.ts'
import { toYaml } from './yaml.ts'

/** One cluster in a client configuration. */
export interface ClientContext {
  endpoints: string[]
  nodes?: string[]
  ca: string
  crt: string
  key: string
}

/** A client configuration with one context. */
export interface ClientConfig {
  context: string
  contexts: Record<string, ClientContext>
}

/** The inputs of a client configuration. */
export interface ClientOptions {
  clusterName: string
  endpoints?: string[]
  nodes?: string[]
  /** Default: os:admin. */
  roles?: string[]
  /** Milliseconds the certificate is valid. */
  lifetime?: number
  now?: Date
}

/** Generates a client configuration, with a certificate signed by the authority of the machine API. */
export function newClientConfig(authority: SecretsBundle['certs']['os'], options: ClientOptions): ClientConfig {
  const { clusterName, endpoints = [], nodes, roles = ['os:admin'], lifetime = year, now } = options
  const ca = pemOf(authority)
  const pair = newCertificate({ ca, subject: { organizations: roles }, usage: ['clientAuth'], lifetime, ...(now && { now }) })
  const context: ClientContext = {
    endpoints,
    ...(nodes && { nodes }),
    ca: authority.crt,
    crt: toBase64(pair.crt),
    key: toBase64(pair.key),
  }
  return { context: clusterName, contexts: { [clusterName]: context } }
}

/** Writes a client configuration. */
export const formatClientConfig = (config: ClientConfig): string => toYaml(config)
