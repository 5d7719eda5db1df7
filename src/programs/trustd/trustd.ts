/** trustd: on control plane nodes, signs the server certificates of workers and seals keys of their disks. */

import { daemonFlags, startDaemon } from '../../cosi/daemon.ts'
import type { Logger } from '../../cosi/log.ts'
import { Store } from '../../cosi/store.ts'
import { fromBase64 } from '../../pki/certificate.ts'
import { tlsKey } from '../../pki/key.ts'
import { type Channel, connect } from '../../rpc/client/channel.ts'
import { follow } from '../../rpc/client/follow.ts'
import type { ShareLimits } from '../../rpc/http2/holder.ts'
import { type Server, serveTls } from '../../rpc/server/server.ts'
import { pause } from '../../timing/pause.ts'
import { splitHostPort } from '../../wire/host-port.ts'
import { type Authority, certificateMethod } from './certificate.ts'
import type { MemberRecord, SharedNames } from './claims.ts'
import { siblingMethods } from './siblings.ts'

const daemon = {
  name: 'trustd',
  usage: 'usage: trustd [--listen <address>:50001] [--runtime <resource socket>] [--verbose]',
  options: {
    listen: { type: 'string', default: ':50001' },
    runtime: { type: 'string', default: '/system/run/trustd/runtime.sock' },
    verbose: { type: 'boolean', default: false },
  },
} as const

/**
 * What its clients may hold: machines that join or renew make one connection and one call. Those behind a translation share
 * an address. Its control group has 128 MiB.
 */
const trustdShares: ShareLimits = {
  address: { connections: 128, calls: 256, bytes: 4 * 1024 * 1024 },
  identity: { connections: 128, calls: 256, bytes: 4 * 1024 * 1024 },
  all: { connections: 1024, calls: 2048, bytes: 16 * 1024 * 1024 },
}

/** Milliseconds until another attempt to serve. */
const retryInterval = 500

interface Pair {
  crt: string
  key: string
}

interface Root {
  issuingCA?: Pair
  token?: string
  certSANDNSNames?: string[]
  certSANIPs?: string[]
}

/** The program. */
export async function main(args: string[]): Promise<number> {
  const options = daemonFlags(daemon, args)
  if (!options) return 64
  const { log, signal } = startDaemon(options)
  await run(splitHostPort(options.listen, 50_001), options.runtime, log, signal)
  return 0
}

/** Serves until the signal, with the certificates the resource API shows. */
export async function run(address: { host: string; port: number }, socket: string, log: Logger, signal: AbortSignal): Promise<void> {
  const channel = connect({ unix: socket }, { connectTimeout: 5_000 })
  let authority: (Authority & { shared: SharedNames }) | undefined
  let members: readonly MemberRecord[] | undefined
  let sealing: readonly Uint8Array[] | undefined
  let server: Server | undefined
  let serving = Promise.resolve()
  const serve = async (pair: Pair) => {
    const tls = { cert: fromBase64(pair.crt), key: tlsKey(fromBase64(pair.key)) }
    if (server) {
      await server.renew(tls)
      log.info('certificate renewed')
      return
    }
    const methods = [
      certificateMethod(
        () => authority,
        () => members,
      ),
      ...siblingMethods(
        () => sealing,
        () => authority?.token,
      ),
    ]
    // Callers prove themselves by the token; they bring no roles.
    const served = { methods, store: new Store(), log, roles: () => new Set<never>(), shares: trustdShares }
    server = await serveTls({ port: address.port, host: address.host || '::' }, tls, served)
    log.info('trustd serves', { port: server.port })
  }
  let pair: Pair | undefined
  // For a moment the address may be in use, by the trustd before this one.
  const serveLatest = async () => {
    while (pair && !signal.aborted)
      try {
        return await serve(pair)
      } catch (error) {
        log.error('serving failed, will be retried', { error })
        await pause(retryInterval, signal)
      }
  }
  const own = { namespace: 'secrets', type: 'TrustdCertificates.secrets.talos.dev', id: 'trustd' }
  const root = { namespace: 'secrets', type: 'OSRootSecrets.secrets.talos.dev', id: 'os' }
  const siblings = { namespace: 'secrets', type: 'SiblingKeys.secrets.ichor.dev', id: 'siblings' }
  const watching = [
    followMembers(channel, { signal, log }, (found) => {
      members = found
    }),
    follow(channel, own, { signal, log }, ({ spec }, gone) => {
      const { server: latest } = spec as { server?: Pair }
      if (gone || !latest?.crt || !latest.key) return
      pair = latest
      serving = serving.then(serveLatest)
    }),
    follow(channel, root, { signal, log }, ({ spec }, gone) => {
      const { issuingCA, token, certSANDNSNames: dns = [], certSANIPs: ips = [] } = spec as Root
      const { crt, key } = issuingCA ?? {}
      authority = gone || !crt || !key || !token ? undefined : { crt: fromBase64(crt), key: fromBase64(key), token, shared: { dns, ips } }
    }),
    follow(channel, siblings, { signal, log }, ({ spec }, gone) => {
      const { keys } = spec as { keys: string[] }
      sealing = gone ? undefined : keys.map((key) => new Uint8Array(Buffer.from(key, 'base64')))
    }),
  ]
  await Promise.all(watching)
  channel.close()
  await serving
  await server?.close(5_000)
}

/** Reports the members of the cluster once all are known, and on each change. While the watch restarts, the last report stays valid. */
function followMembers(
  channel: Channel,
  { signal, log }: { signal: AbortSignal; log: Logger },
  report: (members: readonly MemberRecord[]) => void,
): Promise<void> {
  const located = { namespace: 'cluster', type: 'Members.cluster.talos.dev', options: { bootstrapContents: true } }
  const records = new Map<string, MemberRecord>()
  let caughtUp = false
  const publish = () => {
    if (caughtUp) report([...records.values()])
  }
  const watch = {
    signal,
    log,
    began: () => {
      caughtUp = false
      records.clear()
    },
    complete: () => {
      caughtUp = true
      publish()
    },
  }
  return follow(channel, located, watch, ({ metadata: { id }, spec }, gone) => {
    const { hostname, addresses = [], machineType } = spec as { hostname: string; addresses?: string[]; machineType: string }
    if (gone) records.delete(id)
    else records.set(id, { hostname, nodename: id, addresses, controlPlane: machineType !== 'worker' })
    publish()
  })
}
