/**
 * The identity of this node: its certificates and addresses, and where it listens, watched in the resource API over apid's own socket,
 * which serves only these resources to apid. They are renewed within the day; every change is yielded.
 */

import os from 'node:os'
import { background } from '../../cosi/background.ts'
import type { Logger } from '../../cosi/log.ts'
import { tlsKey } from '../../pki/key.ts'
import { connect } from '../../rpc/client/channel.ts'
import { type FollowOptions, follow } from '../../rpc/client/follow.ts'
import { splitHostPort } from '../../wire/host-port.ts'
import { addressOnly } from '../../wire/prefix.ts'

/** A certificate (chain) and its key, in PEM. */
export interface KeyPair {
  readonly certificate: string
  readonly key: string
}

/** Who this node is. */
export interface Identity {
  readonly server: KeyPair
  /** For calls to other nodes; a worker has none. */
  readonly client?: KeyPair
  /** PEM of the authorities whose certificates are accepted. */
  readonly authorities: string
  /** There is no configuration yet: anyone may look. */
  readonly maintenance: boolean
  /** Listens on this address alone; empty for all, undefined for none. */
  readonly host: string | undefined
  /** Names and addresses of this node, lower case. */
  readonly own: ReadonlySet<string>
}

interface CertificatesSpec {
  server?: { crt: string; key: string }
  client?: { crt: string; key: string }
  acceptedCAs?: { crt: string }[]
  skipVerifyingClientCert?: boolean
}

/** Yields the identity whenever it has changed; connects again when machined was away. Ends with the signal. */
export async function* watchIdentity(socket: string, log: Logger, signal: AbortSignal): AsyncGenerator<Identity, void> {
  const channel = connect({ unix: socket }, { connectTimeout: 5_000 })
  let addresses = new Map<string, readonly string[]>()
  // While a watch restarts, the previous addresses stay valid.
  let listed = addresses
  let certificates: CertificatesSpec | undefined
  let listenAddress: string | undefined
  let wake = () => {}
  let changed = false
  const note = () => {
    changed = true
    wake()
  }
  signal.addEventListener('abort', note)
  const ours = { namespace: 'secrets', type: 'ApiCertificates.secrets.talos.dev', id: 'api' }
  const watch = (watched: Parameters<typeof follow>[1], take: Parameters<typeof follow>[3], options: Partial<FollowOptions> = {}) =>
    background(follow(channel, watched, { signal, log, ...options }, take), log, 'watch resources failed', { type: watched.type })
  watch(ours, ({ spec }, gone) => {
    if (!gone) certificates = spec as CertificatesSpec
    note()
  })
  const place = { namespace: 'runtime', type: 'APIServiceConfigs.runtime.talos.dev', id: 'api' }
  watch(place, ({ spec }, gone) => {
    listenAddress = gone ? undefined : (spec as { listenAddress: string }).listenAddress
    note()
  })
  const began = () => {
    listed = new Map()
  }
  const complete = () => {
    addresses = listed
    note()
  }
  const located = { namespace: 'network', type: 'NodeAddresses.net.talos.dev', options: { bootstrapContents: true } }
  watch(
    located,
    ({ metadata, spec }, gone) => {
      if (gone) listed.delete(metadata.id)
      else listed.set(metadata.id, (spec as { addresses?: string[] }).addresses ?? [])
      note()
    },
    { began, complete },
  )
  while (!signal.aborted) {
    if (!changed)
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    changed = false
    const identity = certificates && identityOf(certificates, [...addresses.values()].flat(), listenAddress)
    if (identity && !signal.aborted) yield identity
  }
  channel.close()
}

/** The identity that these resources describe; undefined while the server's certificate is missing. */
export function identityOf(spec: CertificatesSpec, addresses: readonly string[], listenAddress: string | undefined): Identity | undefined {
  if (!spec.server?.crt || !spec.server.key) return undefined
  const [short = ''] = os.hostname().split('.')
  const names = ['localhost', '127.0.0.1', '::1', os.hostname(), short]
  return {
    server: keyPair(spec.server),
    ...(spec.client?.crt && { client: keyPair(spec.client) }),
    authorities: (spec.acceptedCAs ?? []).map(({ crt }) => text(crt)).join('\n'),
    maintenance: spec.skipVerifyingClientCert ?? false,
    host: listenAddress === undefined ? undefined : splitHostPort(listenAddress, 0).host,
    own: new Set([...names, ...addresses.map(addressOnly)].map((name) => name.toLowerCase())),
  }
}

function keyPair({ crt, key }: { crt: string; key: string }): KeyPair {
  return { certificate: text(crt), key: tlsKey(text(key)) }
}

function text(base64: string): string {
  return Buffer.from(base64, 'base64').toString('utf8')
}
