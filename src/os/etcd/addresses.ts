/** The node's addresses at which etcd listens and is reached. */
import type { SpecOf } from '../../cosi/resource.ts'
import { isIPv6 } from '../../wire/prefix.ts'
import { allowedAddresses } from '../network/public.ts'
import type { EtcdConfig } from './resources/etcd-config.ts'
import type { EtcdSpec } from './resources/etcd-spec.ts'

type Addresses = Pick<SpecOf<typeof EtcdSpec>, 'advertisedAddresses' | 'listenPeerAddresses' | 'listenClientAddresses'>

/** Chooses among the routed addresses of the node, of which there is at least one. Throws when the configuration allows none. */
export function etcdAddresses(config: SpecOf<typeof EtcdConfig>, routed: readonly string[]): Addresses {
  const { advertiseValidSubnets = [], listenValidSubnets = [] } = config
  const allowed = allowedAddresses(routed, advertiseValidSubnets, config.advertiseExcludeSubnets)
  const advertisedAddresses = advertiseValidSubnets.length > 0 ? allowed : allowed.slice(0, 1)
  if (advertisedAddresses.length === 0) throw none('advertisedSubnets', advertiseValidSubnets, routed)
  const everywhere = [advertisedAddresses.some(isIPv6) ? '::' : '0.0.0.0']
  const chosen = listenValidSubnets.length > 0 ? allowedAddresses(routed, listenValidSubnets, config.listenExcludeSubnets) : []
  if (listenValidSubnets.length > 0 && chosen.length === 0) throw none('listenSubnets', listenValidSubnets, routed)
  return {
    advertisedAddresses,
    listenPeerAddresses: chosen.length > 0 ? chosen : everywhere,
    // The API server of this node connects over loopback.
    listenClientAddresses: chosen.length > 0 ? [...chosen, '127.0.0.1'] : everywhere,
  }
}

function none(key: string, subnets: readonly string[], routed: readonly string[]): Error {
  const where = subnets.length > 0 ? ` (${subnets.join(', ')})` : ''
  return new Error(`no address of the node (${routed.join(', ')}) lies in cluster.etcd.${key}${where}`)
}
