/** Where a command goes and as whom: the client configuration, with the flags winning. */

import { X509Certificate } from 'node:crypto'
import { UsageError } from './failure.ts'
import type { Io } from './io.ts'
import { talosconfigPaths } from './talosconfig/path.ts'
import { type Context, readTalosconfig } from './talosconfig/talosconfig.ts'

/** The global flags as commander leaves them. */
export interface ClusterFlags {
  talosconfig?: string
  context?: string
  nodes?: string[]
  endpoints?: string[]
  cluster?: string
}

/** Where to connect and as whom. */
export interface Target {
  readonly endpoints: readonly string[]
  readonly nodes: readonly string[]
  readonly cluster?: string | undefined
  /** PEM; absent when the server is not verified. */
  readonly tls?:
    | {
        ca?: string | undefined
        cert?: string | undefined
        key?: string | undefined
        insecure?: boolean
        fingerprint?: string | readonly string[] | undefined
      }
    | undefined
  /** Where the client certificate is from, as messages call it. */
  readonly credentials?: string
  /** Init's own socket, on the machine itself, and the roles that are claimed there. */
  readonly socket?: string
  readonly roles?: readonly string[]
  /** How messages call the source of this target. */
  readonly source: string
}

/** Reads the client configuration and lets the flags win. */
export async function resolveTarget(flags: ClusterFlags, io: Io): Promise<Target> {
  const paths = talosconfigPaths(flags.talosconfig, io.env)
  const found = await readTalosconfig(paths)
  if (!found) {
    throw new UsageError(
      `no client configuration at "${paths[0]}": name one with --talosconfig or $TALOSCONFIG, or make one with "talosctl gen config"`,
    )
  }
  const { path, config } = found
  const name = flags.context ?? config.context
  if (!name) throw new UsageError(`no context is chosen in "${path}": run "talosctl config context <name>" or name one with --context`)
  const context = Object.hasOwn(config.contexts, name) ? config.contexts[name] : undefined
  if (!context) {
    const known = Object.keys(config.contexts).join(', ')
    throw new UsageError(`context "${name}" is not in "${path}"${known ? `: there are ${known}` : ''}`)
  }
  const endpoints = flags.endpoints ?? (context.endpoints.length > 0 ? context.endpoints : (flags.nodes ?? context.nodes))
  if (endpoints.length === 0) {
    throw new UsageError(`context "${name}" in "${path}" has no endpoints: run "talosctl config endpoint <address>" or use --endpoints`)
  }
  return {
    endpoints,
    nodes: [...new Set(flags.nodes ?? context.nodes)],
    cluster: flags.cluster ?? context.cluster,
    tls: credentials(context, `context "${name}" in "${path}"`),
    credentials: `context "${name}" in "${path}"`,
    source: `"${path}"`,
  }
}

/** Why nobody takes the client certificate of a target at this moment, and what to do; undefined when it is in its time. */
export function certificateTrouble({ tls, credentials }: Target, now: Date): string | undefined {
  if (!tls?.cert) return undefined
  const { validFromDate, validToDate } = readCertificate(tls.cert, credentials)
  const date = (time: Date) => time.toISOString().replace('.000Z', 'Z')
  if (now > validToDate)
    return `the client certificate of ${credentials} expired at ${date(validToDate)}: get a new one with "talosctl config new" from somebody whose certificate is valid, or with "talosctl gen config --with-secrets secrets.yaml --output-types talosconfig" from the cluster's secrets`
  if (now < validFromDate)
    return `the client certificate of ${credentials} is valid from ${date(validFromDate)} on: is the clock of this computer, at ${date(now)}, right?`
  return undefined
}

function readCertificate(pem: string, where: string | undefined): X509Certificate {
  try {
    return new X509Certificate(pem)
  } catch {
    throw new UsageError(`the client certificate of ${where} cannot be read: it is PEM of something else`)
  }
}

function credentials(context: Context, where: string): Target['tls'] {
  if (context.auth?.siderov1)
    throw new UsageError(`${where} signs in with SideroV1 keys, which this client does not do: use a context with a certificate`)
  const pem = (key: 'ca' | 'crt' | 'key') => {
    const text = context[key]
    if (!text) return undefined
    const decoded = Buffer.from(text, 'base64').toString('latin1')
    if (!decoded.includes('-----BEGIN ')) throw new UsageError(`${where}: "${key}" is not base64 of PEM`)
    return decoded
  }
  const [ca, cert, key] = [pem('ca'), pem('crt'), pem('key')]
  if (Boolean(cert) !== Boolean(key)) throw new UsageError(`${where} has ${cert ? 'a certificate but no key' : 'a key but no certificate'}`)
  return { ca, cert, key }
}
