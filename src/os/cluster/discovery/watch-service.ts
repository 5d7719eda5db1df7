/** Follows the discovery service for as long as it is wanted; after a loss it begins again with all there is. */
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

/** Opens a way to the service a configuration names. */
export type ConnectService = (config: Pick<Config, 'serviceEndpoint' | 'serviceEndpointInsecure'>) => Channel

/** Pause between attempts to reach the service, in milliseconds, doubling up to the last. */
const pauses = [250, 15_000] as const
/** Between two questions whether the connection lives, and how long one may take, in milliseconds. */
const pulseInterval = 30_000
const pulseDeadline = 10_000
const clientVersion = `v${version}`
/** A service that sends on more often than this sends in a circle. */
const mostRedirects = 3

/** What is known of the service. */
export class ServiceView {
  /** Other nodes by id. */
  readonly others = new Map<string, AffiliateSpec>()
  /** The address from which the service sees this node, '' while it is not known. */
  ownAddress = ''
  /** Where the service is: where its configuration says, or where it sent us. */
  endpoint: string
  /** Whether it knows this node, as far as we know. */
  known = true

  constructor(
    readonly config: Config,
    /** This node's own id. */
    readonly self: string,
    readonly connect: ConnectService,
  ) {
    this.endpoint = config.serviceEndpoint
  }

  /** A way to the service, wherever it is now. */
  channel(): Channel {
    return this.connect({ ...this.config, serviceEndpoint: this.endpoint })
  }
}

interface Following {
  wake(): void
  tell(error?: unknown): void
  readonly log: Logger
}

/** Keeps a view true until the signal. */
export async function watchService(view: ServiceView, { wake, tell, log }: Following, signal: AbortSignal): Promise<void> {
  let pause: number = pauses[0]
  while (!signal.aborted) {
    let channel = view.channel()
    const lost = new AbortController()
    let pulse: ReturnType<typeof setInterval> | undefined
    try {
      channel = await greet(view, channel, log)
      pulse = setInterval(() => {
        feel(view, channel, wake).catch((error) => lost.abort(error))
      }, pulseInterval)
      const { serviceClusterID: clusterId } = view.config
      let first = true
      for await (const { affiliates, deleted } of channel.serverStream(
        'sidero.discovery.server.Cluster/Watch',
        { clusterId },
        { signal: AbortSignal.any([signal, lost.signal]) },
      )) {
        if (first) {
          view.others.clear()
          // A service that was started anew has forgotten everybody: it is told again at once.
          view.known = affiliates.some(({ id, data }) => id === view.self && data.length > 0)
        }
        first = false
        pause = pauses[0]
        tell()
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
      tell(lost.signal.reason ?? error)
      log.warn('discovery service is out of reach', { endpoint: view.endpoint, error: lost.signal.reason ?? error, retry_in: `${pause}ms` })
      view.endpoint = view.config.serviceEndpoint
    } finally {
      clearInterval(pulse)
      channel.close()
    }
    await systemClock.sleep(pause, signal)
    pause = Math.min(pause * 2, pauses[1])
  }
}

/** Asks whether the service still hears us, and from which address: a watch alone would not notice that its connection is dead. */
async function feel(view: ServiceView, channel: Channel, wake: () => void): Promise<void> {
  const { redirect, clientIp } = await channel.unary(
    'sidero.discovery.server.Cluster/Hello',
    { clusterId: view.config.serviceClusterID, clientVersion },
    { deadline: pulseDeadline },
  )
  if (redirect?.endpoint) throw new Error(`discovery service "${view.endpoint}" sends us on to "${redirect.endpoint}"`)
  const before = view.ownAddress
  view.ownAddress = ownAddressOf(clientIp)
  if (view.ownAddress !== before) wake()
}

const ownAddressOf = (bytes: Uint8Array): string => (bytes.length === 4 || bytes.length === 16 ? formatIp(bytes) : '')

/** Says hello and learns our own address; goes where the service sends us. Gives the channel of the one that takes us. */
async function greet(view: ServiceView, first: Channel, log: Logger): Promise<Channel> {
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
      if (left === 0) throw new Error(`discovery service "${view.config.serviceEndpoint}" sends from one to the other without an end`)
      log.info('discovery service sends us on', { from: view.endpoint, to: redirect.endpoint })
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
  if (data.length === 0) return // others told of its endpoints before it told of itself
  try {
    const spec = readAffiliate(config.serviceEncryptionKey, data, endpoints)
    // A record under another's name would be a lie of the service.
    if (spec.nodeId === id) others.set(id, spec)
  } catch (error) {
    // One bad record, by mistake or malice, must not hide the others.
    if (!(error instanceof SealError)) throw error
    log.debug('an affiliate does not open', { id })
  }
}
