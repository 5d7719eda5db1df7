import { defineController, exclusive, weak } from '../../../cosi/controller.ts'
import { isIPv6 } from '../../../wire/prefix.ts'
import { allowedAddresses } from '../../network/allowed-addresses.ts'
import { HostnameStatus } from '../../network/resources/hostname-status.ts'
import { NodeAddress } from '../../network/resources/node-address.ts'
import { EtcdConfig } from '../resources/etcd-config.ts'
import { EtcdSpec } from '../resources/etcd-spec.ts'

/** etcd's name and addresses: what others are told, and where it listens. */
export const specEtcd = defineController({
  name: 'etcd.SpecController',
  inputs: {
    config: weak(EtcdConfig, { id: 'etcd' }),
    hostname: weak(HostnameStatus, { id: 'hostname' }),
    addresses: weak(NodeAddress),
  },
  outputs: { etcd: exclusive(EtcdSpec) },
  reconcile({ config, hostname, addresses, etcd, log }) {
    const given = config.get('etcd')?.spec
    const name = hostname.get('hostname')?.spec.hostname
    const routed = addresses.get('routed-no-k8s')?.spec.addresses
    if (!given || !name || !routed || routed.length === 0) return
    const { advertiseValidSubnets = [], listenValidSubnets = [] } = given
    const allowed = allowedAddresses(routed, advertiseValidSubnets, given.advertiseExcludeSubnets)
    const advertisedAddresses = advertiseValidSubnets.length > 0 ? allowed : allowed.slice(0, 1)
    if (advertisedAddresses.length === 0) {
      log.warn('no address of the node lies in cluster.etcd.advertisedSubnets', { addresses: routed, allowed: advertiseValidSubnets })
      return
    }
    const everywhere = [advertisedAddresses.some(isIPv6) ? '::' : '0.0.0.0']
    const chosen = listenValidSubnets.length > 0 ? allowedAddresses(routed, listenValidSubnets, given.listenExcludeSubnets) : []
    if (listenValidSubnets.length > 0 && chosen.length === 0) {
      log.warn('no address of the node lies in cluster.etcd.listenSubnets', { addresses: routed, allowed: listenValidSubnets })
      return
    }
    etcd.put('etcd', {
      name,
      advertisedAddresses,
      listenPeerAddresses: chosen.length > 0 ? chosen : everywhere,
      // The API server of this node asks over loopback.
      listenClientAddresses: chosen.length > 0 ? [...chosen, '127.0.0.1'] : everywhere,
      image: given.image,
      extraArgs: given.extraArgs,
    })
  },
})
