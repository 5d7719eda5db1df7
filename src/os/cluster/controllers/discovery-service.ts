import { type Controller, defineController, shared, weak } from '../../../cosi/controller.ts'
import type { SpecOf } from '../../../cosi/resource.ts'
import type { Channel } from '../../../rpc/client/channel.ts'
import { familyOf, hostPrefix } from '../../../wire/prefix.ts'
import { KubeSpanEndpoint } from '../../kubespan/resources/kube-span-endpoint.ts'
import { AddressStatus } from '../../network/resources/address.ts'
import { MachineResetSignal } from '../../runtime/resources/machine-reset-signal.ts'
import { writeAffiliate, writeEndpoint } from '../discovery/record.ts'
import { type ConnectService, ServiceView, watchService } from '../discovery/watch-service.ts'
import { Affiliate } from '../resources/affiliate.ts'
import { DiscoveryConfig } from '../resources/discovery-config.ts'
import { Identity } from '../resources/identity.ts'

/** How long the service keeps an affiliate without an update, in seconds; it is published refreshInterval after half of it. */
const lifetime = 30 * 60
const refreshInterval = (lifetime * 1000) / 2

/** A published record, and when by the monotonic clock. */
interface Published {
  readonly what: unknown
  readonly time: number
}

/** Publishes this node and the observed endpoints of others to the discovery service, and reads the other affiliates from it. */
export const discoverByService = (connect: ConnectService): Controller => {
  let view: ServiceView | undefined
  /** By affiliate: this node's own record, others' endpoints. */
  const published = new Map<string, Published>()
  return defineController({
    name: 'cluster.DiscoveryServiceController',
    inputs: {
      config: weak(DiscoveryConfig),
      identity: weak(Identity),
      harvested: weak(KubeSpanEndpoint),
      reset: weak(MachineResetSignal),
    },
    outputs: { raw: shared(Affiliate, 'cluster-raw'), addresses: shared(AddressStatus, 'cluster') },
    async reconcile({ config, identity, harvested, reset, raw, addresses, also, background, clock, log, wakeIn }) {
      const found = config.get('cluster')?.spec
      const id = identity.get('local')?.spec.nodeId
      if (!found?.registryServiceEnabled || !id) {
        view = undefined
        published.clear()
        return
      }
      if (!view || view.self !== id || !Bun.deepEquals(view.config, found)) {
        view = new ServiceView(found, id, connect)
        published.clear()
      }
      const seen = view
      background({ name: 'watch', of: digest(found) }, (signal, wake, report) => watchService(seen, { wake, report, log }, signal))
      for (const [other, spec] of seen.others) raw.put(`service/${other}`, spec)
      if (seen.ownAddress) addresses.put(`service/${found.serviceEndpoint}`, addressStatus(seen.ownAddress))
      if (!seen.known) {
        published.clear()
        seen.known = true
      }
      const spec = also(weak(Affiliate, { id })).get(id)?.spec
      if (reset.get('machine')) {
        if (published.delete(id))
          await call(seen, (channel) => channel.unary('sidero.discovery.server.Cluster/AffiliateDelete', named(seen, id)))
        return
      }
      const due = new Map<string, { data?: Buffer; endpoints: string[]; what: unknown }>()
      const isDue = (key: string, what: unknown) => {
        const before = published.get(key)
        return !before || !Bun.deepEquals(before.what, what) || clock.elapsed() - before.time >= refreshInterval
      }
      if (spec && isDue(id, spec))
        due.set(id, { data: writeAffiliate(found.serviceEncryptionKey, spec), endpoints: spec.kubespan?.endpoints ?? [], what: spec })
      for (const [other, endpoints] of byAffiliate(harvested.list().map((each) => each.spec)))
        if (other !== id && isDue(other, endpoints)) due.set(other, { endpoints, what: endpoints })
      if (due.size > 0)
        await call(seen, async (channel) => {
          for (const [affiliateId, { data, endpoints, what }] of due) {
            await channel.unary('sidero.discovery.server.Cluster/AffiliateUpdate', {
              ...named(seen, affiliateId),
              ...(data && { affiliateData: data }),
              affiliateEndpoints: endpoints.flatMap((endpoint) => writeEndpoint(found.serviceEncryptionKey, endpoint) ?? []),
              ttl: { seconds: lifetime, nanos: 0 },
            })
            published.set(affiliateId, { what, time: clock.elapsed() })
          }
        })
      wakeIn(refreshInterval)
    },
  })
}

/** The address of this node as the service sees it. */
function addressStatus(ip: string): SpecOf<typeof AddressStatus> {
  return {
    address: hostPrefix(ip),
    linkIndex: 0,
    linkName: '',
    family: familyOf(ip),
    scope: 'global',
    flags: '',
    priority: 0,
  }
}

const named = ({ config }: ServiceView, affiliateId: string) => ({ clusterId: config.serviceClusterID, affiliateId })

/** Identifies a configuration, so that another one is another watch. The key in it is hashed. */
const digest = (config: SpecOf<typeof DiscoveryConfig>): string => {
  const { serviceEndpoint, serviceEndpointInsecure, serviceClusterID, serviceEncryptionKey } = config
  const parts = [serviceEndpoint, serviceEndpointInsecure === true, serviceClusterID, Buffer.from(serviceEncryptionKey).toString('hex')]
  return new Bun.CryptoHasher('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 16)
}

/** Endpoints by affiliate. */
function byAffiliate(harvested: readonly SpecOf<typeof KubeSpanEndpoint>[]): Map<string, string[]> {
  const found = new Map<string, string[]>()
  for (const { affiliateID, endpoint } of harvested) found.set(affiliateID, [...(found.get(affiliateID) ?? []), endpoint].sort())
  return found
}

async function call(view: ServiceView, run: (channel: Channel) => Promise<unknown>): Promise<void> {
  const channel = view.channel()
  try {
    await run(channel)
  } finally {
    channel.close()
  }
}
