import { type Controller, defineController, shared, weak } from '../../../cosi/controller.ts'
import type { Logger } from '../../../cosi/log.ts'
import type { SpecOf } from '../../../cosi/resource.ts'
import type { Channel } from '../../../rpc/client/channel.ts'
import { decode, encode } from '../../../rpc/codec.ts'
import type { sidero } from '../../../rpc/messages.ts'
import { messageType } from '../../../rpc/schema.ts'
import { formatIp, parseIp } from '../../../wire/ip.ts'
import { MachineResetSignal } from '../../runtime/resources/machine-reset-signal.ts'
import { SealError, seal, unseal } from '../discovery/sealed.ts'
import { Affiliate } from '../resources/affiliate.ts'
import { DiscoveryConfig } from '../resources/discovery-config.ts'
import { Identity } from '../resources/identity.ts'

type AffiliateSpec = SpecOf<typeof Affiliate>
type Config = SpecOf<typeof DiscoveryConfig>

/** How long the service keeps an affiliate that is not heard of, in seconds; it is told again at half of it. */
const lifetime = 30 * 60

/** Pause between attempts to reach the service, in milliseconds, doubling up to the last. */
const pauses = [250, 15_000] as const

const messageName = 'sidero.discovery.client.Affiliate'

/** Tells the discovery service of this node, and learns of the others from it. */
export const discoverByService = (connect: (config: Config) => Channel): Controller => {
  const others = new Map<string, AffiliateSpec>()
  let sent: { key: string; spec: AffiliateSpec; time: number } | undefined
  return defineController({
    name: 'cluster.DiscoveryServiceController',
    inputs: {
      config: weak(DiscoveryConfig),
      identity: weak(Identity),
      reset: weak(MachineResetSignal),
    },
    outputs: { raw: shared(Affiliate, 'cluster-raw') },
    async reconcile({ config, identity, reset, raw, also, background, log, now, wakeIn }) {
      const found = config.get('cluster')?.spec
      const id = identity.get('local')?.spec.nodeId
      if (!found?.registryServiceEnabled || !id) {
        others.clear()
        sent = undefined
        return
      }
      const key = `${found.serviceEndpoint} ${found.serviceClusterID}`
      // A service that was started anew has forgotten everybody: it is told again at once.
      const forgotten = () => {
        sent = undefined
      }
      background(`watch ${key}`, (signal, wake, tell) =>
        watch({ config: found, self: id, connect, others, forgotten, wake, tell, log }, signal),
      )
      for (const [other, spec] of others) raw.put(`service/${other}`, spec)
      const spec = also(weak(Affiliate, { id })).get(id)?.spec
      if (reset.get('machine')) {
        if (sent)
          await call(found, connect, (channel) => channel.unary('sidero.discovery.server.Cluster/AffiliateDelete', named(found, id)))
        sent = undefined
      } else if (spec) {
        const due = !sent || sent.key !== key || !Bun.deepEquals(sent.spec, spec) || now().getTime() - sent.time >= (lifetime * 1000) / 2
        if (due) {
          const data = seal(found.serviceEncryptionKey, encode(messageType(messageName), toWire(spec)))
          await call(found, connect, (channel) =>
            channel.unary('sidero.discovery.server.Cluster/AffiliateUpdate', {
              ...named(found, id),
              affiliateData: data,
              affiliateEndpoints: [],
              ttl: { seconds: lifetime, nanos: 0 },
            }),
          )
          sent = { key, spec, time: now().getTime() }
        }
        wakeIn((lifetime * 1000) / 2)
      }
    },
  })
}

const named = (config: Config, affiliateId: string) => ({ clusterId: config.serviceClusterID, affiliateId })

async function call(config: Config, connect: (config: Config) => Channel, run: (channel: Channel) => Promise<unknown>): Promise<void> {
  const channel = connect(config)
  try {
    await run(channel)
  } finally {
    channel.close()
  }
}

interface Watching {
  readonly config: Config
  /** Our own id. */
  readonly self: string
  readonly connect: (config: Config) => Channel
  readonly others: Map<string, AffiliateSpec>
  /** Called when the service does not know us. */
  forgotten(): void
  wake(): void
  tell(error?: unknown): void
  readonly log: Logger
}

/** Follows the service for as long as it is wanted; after a loss it begins again with all there is. */
async function watch({ config, self, connect, others, forgotten, wake, tell, log }: Watching, signal: AbortSignal): Promise<void> {
  let pause: number = pauses[0]
  while (!signal.aborted) {
    const channel = connect(config)
    try {
      const clusterId = config.serviceClusterID
      await channel.unary('sidero.discovery.server.Cluster/Hello', { clusterId, clientVersion: 'v1.13.0' })
      let first = true
      for await (const { affiliates, deleted } of channel.serverStream(
        'sidero.discovery.server.Cluster/Watch',
        { clusterId },
        { signal },
      )) {
        if (first) {
          others.clear()
          if (!affiliates.some(({ id }) => id === self)) forgotten()
        }
        first = false
        tell()
        pause = pauses[0]
        for (const { id, data } of affiliates) {
          if (id === self) continue
          if (deleted) others.delete(id)
          else {
            const spec = open(config, data, log)
            if (spec) others.set(id, spec)
          }
        }
        wake()
      }
    } catch (error) {
      if (signal.aborted) return
      tell(error)
      log.warn('discovery service is out of reach', { endpoint: config.serviceEndpoint, error, retry_in: `${pause}ms` })
    } finally {
      channel.close()
    }
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, pause)
      const stop = () => {
        clearTimeout(timer)
        resolve()
      }
      signal.addEventListener('abort', stop, { once: true })
    })
    pause = Math.min(pause * 2, pauses[1])
  }
}

function open(config: Config, data: Uint8Array, log: Logger): AffiliateSpec | undefined {
  try {
    return fromWire(
      decode(messageType(messageName), unseal(config.serviceEncryptionKey, data)) as unknown as sidero.discovery.client.Affiliate,
    )
  } catch (error) {
    // One bad record, by mistake or malice, must not hide the others.
    if (!(error instanceof SealError)) log.debug('affiliate does not decode', { error })
    return undefined
  }
}

function toWire({ nodeId, addresses, hostname, nodename, machineType, operatingSystem, controlPlane }: AffiliateSpec) {
  return {
    nodeId,
    addresses: addresses.map(parseIp).filter((bytes) => bytes !== undefined),
    hostname,
    nodename: nodename ?? '',
    machineType,
    operatingSystem,
    ...(controlPlane ? { controlPlane: { apiServerPort: controlPlane.port } } : {}),
  }
}

function fromWire(message: sidero.discovery.client.Affiliate): AffiliateSpec {
  const types = ['init', 'controlplane', 'worker'] as const
  return {
    nodeId: message.nodeId,
    addresses: message.addresses.filter(({ length }) => length === 4 || length === 16).map((bytes) => formatIp(bytes)),
    hostname: message.hostname,
    ...(message.nodename ? { nodename: message.nodename } : {}),
    operatingSystem: message.operatingSystem,
    machineType: types.find((type) => type === message.machineType) ?? 'unknown',
    ...(message.controlPlane ? { controlPlane: { port: message.controlPlane.apiServerPort } } : {}),
  }
}
