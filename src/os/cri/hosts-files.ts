/**
 * containerd's `hosts.toml` files: for each registry the endpoints to try in order, and how to trust them.
 * https://github.com/containerd/containerd/blob/main/docs/hosts.md
 */

import type { SpecOf } from '../../cosi/resource.ts'
import { hostsFolder } from './daemons.ts'
import type { RegistryConfig } from './resources/registry-config.ts'
import { formatToml, type TomlTable } from './toml.ts'

type Registries = SpecOf<typeof RegistryConfig>
type Mirror = NonNullable<Registries['mirrors']>[string]
type Trust = NonNullable<Registries['tls']>[string]

/** A file in the folder of hosts. */
export interface HostsFile {
  /** `docker.io/hosts.toml` */
  readonly path: string
  readonly contents: string
  readonly mode: number
}

/** The files for all mirrors, and for registries with their own TLS settings. */
export function hostsFiles({ mirrors = {}, tls = {} }: Registries): HostsFile[] {
  const names = new Set([...Object.keys(mirrors), ...Object.keys(tls)])
  return [...names].sort().flatMap((name) => filesOf(name, mirrors[name] ?? mirrors['*'], tls))
}

function filesOf(name: string, mirror: Mirror | undefined, tls: NonNullable<Registries['tls']>): HostsFile[] {
  const folder = folderOf(name)
  const files: HostsFile[] = []
  const trust = (host: string): TomlTable => trustOf(tls[host], `${folder}/${host.replace(':', '_')}`, files)
  const endpoints = mirror?.endpoints ?? []
  // The last endpoint replaces the registry itself where fallback is disabled.
  const last = mirror?.skipFallback ? endpoints.at(-1) : undefined
  const tried = last ? endpoints.slice(0, -1) : endpoints
  const server = last?.endpoint ?? (name === '*' ? undefined : serverOf(name))
  const host = Object.fromEntries(
    tried.map(({ endpoint, overridePath }) => [
      endpoint,
      { capabilities: ['pull', 'resolve'], ...(overridePath && { override_path: true }), ...trust(hostOf(endpoint)) },
    ]),
  )
  const contents = formatToml({
    server,
    ...(last?.overridePath && { override_path: true }),
    ...trust(last ? hostOf(last.endpoint) : name),
    host,
  })
  return [{ path: `${folder}/hosts.toml`, contents, mode: 0o600 }, ...files]
}

function trustOf(trust: Trust | undefined, prefix: string, files: HostsFile[]): TomlTable {
  if (!trust) return {}
  const put = (suffix: string, base64: string): string => {
    const path = `${prefix}-${suffix}`
    if (!files.some((file) => file.path === path)) files.push({ path, contents: Buffer.from(base64, 'base64').toString(), mode: 0o600 })
    return `${hostsFolder}/${path}`
  }
  const { ca, clientIdentity, insecureSkipVerify } = trust
  return {
    ...(insecureSkipVerify && { skip_verify: true }),
    ...(ca && { ca: put('ca.crt', ca) }),
    ...(clientIdentity?.crt &&
      clientIdentity.key && { client: [[put('client.crt', clientIdentity.crt), put('client.key', clientIdentity.key)]] }),
  }
}

/** containerd looks for `host_port_` before `host:port`; every registry without a folder uses `_default`. */
function folderOf(name: string): string {
  if (name === '*') return '_default'
  const port = name.lastIndexOf(':')
  return port < 0 ? name : `${name.slice(0, port)}_${name.slice(port + 1)}_`
}

const serverOf = (name: string): string => (name === 'docker.io' ? 'https://registry-1.docker.io' : `https://${name}`)

function hostOf(endpoint: string): string {
  return URL.canParse(endpoint) ? new URL(endpoint).host : endpoint
}
