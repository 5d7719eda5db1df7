import { type Method, serverStream, unary } from '../../rpc/server/method.ts'
import { RpcError } from '../../rpc/status.ts'
import { splitHostPort } from '../../wire/host-port.ts'
import { parseIp, unmapped } from '../../wire/ip.ts'
import { AddressLimits, countedAs } from './address-limits.ts'
import { limits as bounds, type Change, type Registry, RegistryError, type Watcher } from './registry.ts'

const serviceName = 'sidero.discovery.server.Cluster'
const queueLimit = 4096

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
    unary(`${serviceName}/Hello`, 'anyone', ({ clusterId }, { peer }) => {
      if (clusterId === '' || clusterId.length > bounds.id)
        throw new RpcError('InvalidArgument', `cluster id must have 1 to ${bounds.id} characters`)
      const clientIp = addressBytes(peer)
      limits.take(clientIp, clusterId)
      return { clientIp, ...(redirect && { redirect: { endpoint: redirect } }) }
    }),
    unary(`${serviceName}/AffiliateUpdate`, 'anyone', ({ clusterId, affiliateId, affiliateData, affiliateEndpoints, ttl }, { peer }) => {
      admit(peer, clusterId)
      const milliseconds = Number(ttl?.seconds ?? 0) * 1000 + Math.round((ttl?.nanos ?? 0) / 1e6)
      const update = { data: affiliateData, endpoints: affiliateEndpoints, ttl: milliseconds }
      translated(() => registry.update(clusterId, affiliateId, update, countedAs(addressBytes(peer))))
      return {}
    }),
    unary(`${serviceName}/AffiliateDelete`, 'anyone', ({ clusterId, affiliateId }, { peer }) => {
      admit(peer, clusterId)
      translated(() => registry.remove(clusterId, affiliateId))
      return {}
    }),
    unary(`${serviceName}/List`, 'anyone', ({ clusterId }, { peer }) => {
      admit(peer, clusterId)
      return { affiliates: translated(() => registry.list(clusterId)) }
    }),
    serverStream(`${serviceName}/Watch`, 'anyone', async function* ({ clusterId }, { peer, signal }) {
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
      if (pending.length > queueLimit) throw new RpcError('Aborted', 'the watcher is too slow: watch again')
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
  const [unscoped = ''] = splitHostPort(peer, 0).host.split('%')
  const bytes = parseIp(unscoped)
  return bytes ? unmapped(bytes) : new Uint8Array()
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
