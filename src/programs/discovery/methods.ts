import net from 'node:net'
import { type Method, serverStream, unary } from '../../rpc/server/method.ts'
import { RpcError } from '../../rpc/status.ts'
import { AddressLimits, countedAs } from './address-limits.ts'
import { limits as bounds, type Change, type Registry, RegistryError, type Watcher } from './registry.ts'

const SERVICE = 'sidero.discovery.server.Cluster'
const QUEUE = 4096

/** How the service is run. */
export interface Serving {
  readonly limits?: AddressLimits
  /** Where clusters are sent instead: this service hands out nothing any more. */
  readonly redirect?: string | undefined
}

/** The discovery service over a registry. */
export function discoveryMethods(registry: Registry, { limits = new AddressLimits(), redirect }: Serving = {}): Method[] {
  /** What each call but Hello begins with. */
  const admit = (peer: string, clusterId: string) => {
    limits.take(addressBytes(peer), clusterId)
    if (redirect) throw new RpcError('FailedPrecondition', `the service has moved to "${redirect}": say hello again`)
  }
  return [
    unary(`${SERVICE}/Hello`, 'anyone', ({ clusterId }, { peer }) => {
      if (clusterId === '' || clusterId.length > bounds.id)
        throw new RpcError('InvalidArgument', `cluster id must have 1 to ${bounds.id} characters`)
      const clientIp = addressBytes(peer)
      limits.take(clientIp, clusterId)
      return { clientIp, ...(redirect ? { redirect: { endpoint: redirect } } : {}) }
    }),
    unary(`${SERVICE}/AffiliateUpdate`, 'anyone', ({ clusterId, affiliateId, affiliateData, affiliateEndpoints, ttl }, { peer }) => {
      admit(peer, clusterId)
      const milliseconds = Number(ttl?.seconds ?? 0) * 1000 + Math.round((ttl?.nanos ?? 0) / 1e6)
      const update = { data: affiliateData, endpoints: affiliateEndpoints, ttl: milliseconds }
      translated(() => registry.update(clusterId, affiliateId, update, countedAs(addressBytes(peer))))
      return {}
    }),
    unary(`${SERVICE}/AffiliateDelete`, 'anyone', ({ clusterId, affiliateId }, { peer }) => {
      admit(peer, clusterId)
      translated(() => registry.remove(clusterId, affiliateId))
      return {}
    }),
    unary(`${SERVICE}/List`, 'anyone', ({ clusterId }, { peer }) => {
      admit(peer, clusterId)
      return { affiliates: translated(() => registry.list(clusterId)) }
    }),
    serverStream(`${SERVICE}/Watch`, 'anyone', async function* ({ clusterId }, { peer, signal }) {
      admit(peer, clusterId)
      const end = limits.watch(addressBytes(peer))
      try {
        yield* watch(registry, clusterId, countedAs(addressBytes(peer)), signal)
      } finally {
        end()
      }
    }),
  ]
}

async function* watch(registry: Registry, clusterId: string, from: string, signal: AbortSignal) {
  const pending: Change[] = []
  let wake = () => {}
  let ended: RegistryError | undefined
  const watcher: Watcher = {
    from,
    changed(change) {
      pending.push(change)
      wake()
    },
    ended(error) {
      ended = error
      wake()
    },
  }
  const unsubscribe = translated(() => registry.subscribe(clusterId, watcher))
  signal.addEventListener('abort', () => wake())
  try {
    yield { affiliates: registry.list(clusterId), deleted: false }
    while (!signal.aborted) {
      if (ended) throw statusOf(ended)
      if (pending.length > QUEUE) throw new RpcError('Aborted', 'the watcher is too slow: watch again')
      const change = pending.shift()
      if (change) yield { affiliates: [change.affiliate], deleted: change.deleted }
      else {
        await new Promise<void>((resolve) => {
          wake = resolve
          if (signal.aborted) resolve()
        })
      }
    }
  } finally {
    unsubscribe()
  }
}

/** A peer's address as bytes: 4 for IPv4, also when it came mapped into IPv6, else 16. */
export function addressBytes(peer: string): Uint8Array {
  const host = /^\[(.+)\](?::\d+)?$/.exec(peer)?.[1] ?? (net.isIPv6(peer) ? peer : peer.replace(/:\d+$/, ''))
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(host)?.[1] ?? host
  if (net.isIPv4(mapped)) return Uint8Array.from(mapped.split('.').map(Number))
  if (!net.isIPv6(host)) return new Uint8Array()
  const [unscoped = ''] = host.split('%')
  const [left = '', right] = unscoped.split('::')
  const groups = (text: string) => text.split(':').filter((group) => group !== '')
  const head = groups(left)
  const tail = right === undefined ? [] : groups(right)
  const all = [...head, ...Array(Math.max(0, 8 - head.length - tail.length)).fill('0'), ...tail].map((group) => Number.parseInt(group, 16))
  return Uint8Array.from(all.flatMap((group) => [group >> 8, group & 255]))
}

function translated<T>(act: () => T): T {
  try {
    return act()
  } catch (error) {
    if (!(error instanceof RegistryError)) throw error
    throw statusOf(error)
  }
}

const statusOf = ({ kind, message }: RegistryError): RpcError =>
  new RpcError(kind === 'full' ? 'ResourceExhausted' : 'InvalidArgument', message)
