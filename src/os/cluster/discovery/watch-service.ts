/** Watches the discovery service until aborted; after a lost connection it starts again with a full list. */
import { version } from '../../../../package.json'
import { systemClock } from '../../../cosi/clock.ts'
import type { Logger } from '../../../cosi/log.ts'
import type { SpecOf } from '../../../cosi/resource.ts'
import type { Channel } from '../../../rpc/client/channel.ts'
import { formatIp } from '../../../wire/ip.ts'
import type { Affiliate } from '../resources/affiliate.ts'
import type { DiscoveryConfig } from '../resources/discovery-config.ts'
import { readAffiliate } from './record.ts'
import { SealError } from './sealed.ts'

type AffiliateSpec = SpecOf<typeof Affiliate>
type Config = SpecOf<typeof DiscoveryConfig>

/** Connects to the service that a configuration names. */
export type ConnectService = (config: Pick<Config, 'serviceEndpoint' | 'serviceEndpointInsecure'>) => Channel

/** Retry delays of the connection in milliseconds: the first, doubling up to the last. */
const retryDelays = [250, 15_000] as const
/** Keepalive interval of the connection and its timeout, in milliseconds. */
const keepaliveInterval = 30_000
const keepaliveTimeout = 10_000
const clientVersion = `v${version}`
/** A service that redirects more often than this redirects in a circle. */
const mostRedirects = 3

/** The state of the service as this node knows it. */
export class ServiceView {
  /** Other nodes by id. */
  readonly others = new Map<string, AffiliateSpec>()
  /** The address from which the service sees this node, '' while it is not known. */
  ownAddress = ''
  /** The endpoint of the service: the configured one, or that of the last redirect. */
  endpoint: string
  /** Whether the service has this node's record, as far as known. */
  known = true

  constructor(
    readonly config: Config,
    /** This node's own id. */
    readonly self: string,
    readonly connect: ConnectService,
  ) {
    this.endpoint = config.serviceEndpoint
  }

  /** A connection to the current endpoint of the service. */
  channel(): Channel {
    return this.connect({ ...this.config, serviceEndpoint: this.endpoint })
  }
}

interface Listener {
  wake(): void
  report(error?: unknown): void
  readonly log: Logger
}

/** Keeps a view up to date until the signal. */
export async function watchService(view: ServiceView, { wake, report, log }: Listener, signal: AbortSignal): Promise<void> {
  let delay: number = retryDelays[0]
  while (!signal.aborted) {
    let channel = view.channel()
    const lost = new AbortController()
    let keepalive: ReturnType<typeof setInterval> | undefined
    try {
      channel = await connectTo(view, channel, log)
      keepalive = setInterval(() => {
        checkConnection(view, channel, wake).catch((error) => lost.abort(error))
      }, keepaliveInterval)
      const { serviceClusterID: clusterId } = view.config
      let first = true
      for await (const { affiliates, deleted } of channel.serverStream(
        'sidero.discovery.server.Cluster/Watch',
        { clusterId },
        { signal: AbortSignal.any([signal, lost.signal]) },
      )) {
        if (first) {
          view.others.clear()
          // A restarted service has lost all records: this node's is published again at once.
          view.known = affiliates.some(({ id, data }) => id === view.self && data.length > 0)
        }
        first = false
        delay = retryDelays[0]
        report()
        for (const { id, data, endpoints } of affiliates) {
          if (id === view.self) {
            if (deleted) view.known = false
          } else if (deleted) view.others.delete(id)
          else take(view, id, data, endpoints, log)
        }
        wake()
      }
    } catch (error) {
      if (signal.aborted) return
      report(lost.signal.reason ?? error)
      log.warn('discovery service unreachable', { endpoint: view.endpoint, error: lost.signal.reason ?? error, retry_in: `${delay}ms` })
      view.endpoint = view.config.serviceEndpoint
    } finally {
      clearInterval(keepalive)
      channel.close()
    }
    await systemClock.sleep(delay, signal)
    delay = Math.min(delay * 2, retryDelays[1])
  }
}

/** Checks that the service still answers, and from which address it sees this node: the watch alone would not notice a dead connection. */
async function checkConnection(view: ServiceView, channel: Channel, wake: () => void): Promise<void> {
  const { redirect, clientIp } = await channel.unary(
    'sidero.discovery.server.Cluster/Hello',
    { clusterId: view.config.serviceClusterID, clientVersion },
    { deadline: keepaliveTimeout },
  )
  if (redirect?.endpoint) throw new Error(`discovery service "${view.endpoint}" redirects to "${redirect.endpoint}"`)
  const before = view.ownAddress
  view.ownAddress = ownAddressOf(clientIp)
  if (view.ownAddress !== before) wake()
}

const ownAddressOf = (bytes: Uint8Array): string => (bytes.length === 4 || bytes.length === 16 ? formatIp(bytes) : '')

/** Sends Hello and learns this node's address; follows redirects. Returns the channel of the service that accepts this node. */
async function connectTo(view: ServiceView, first: Channel, log: Logger): Promise<Channel> {
  let channel = first
  try {
    for (let left = mostRedirects; ; left--) {
      const { redirect, clientIp } = await channel.unary('sidero.discovery.server.Cluster/Hello', {
        clusterId: view.config.serviceClusterID,
        clientVersion,
      })
      if (!redirect?.endpoint) {
        view.ownAddress = ownAddressOf(clientIp)
        return channel
      }
      if (left === 0) throw new Error(`discovery service "${view.config.serviceEndpoint}" redirects in a circle`)
      log.info('discovery service redirects', { from: view.endpoint, to: redirect.endpoint })
      view.endpoint = redirect.endpoint
      channel.close()
      channel = view.channel()
    }
  } catch (error) {
    channel.close()
    throw error
  }
}

function take({ others, config }: ServiceView, id: string, data: Uint8Array, endpoints: readonly Uint8Array[], log: Logger): void {
  if (data.length === 0) return // others published its endpoints before it published itself
  try {
    const spec = readAffiliate(config.serviceEncryptionKey, data, endpoints)
    // The service must not hand out a record under another node's name.
    if (spec.nodeId === id) others.set(id, spec)
  } catch (error) {
    // One bad record, by mistake or malice, must not hide the others.
    if (!(error instanceof SealError)) throw error
    log.debug('affiliate could not be decrypted', { id })
  }
}
