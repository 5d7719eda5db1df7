import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import { addressOnly } from '../../../wire/prefix.ts'
import { PrefixSet } from '../../../wire/prefix-set.ts'
import { Affiliate } from '../../cluster/resources/affiliate.ts'
import { Identity } from '../../cluster/resources/identity.ts'
import { KubeSpanConfig } from '../resources/kube-span-config.ts'
import { KubeSpanPeerSpec } from '../resources/kube-span-peer-spec.ts'

/**
 * The peers of the mesh: affiliates that have a key. To a peer go its own addresses and the networks it advertises, but for
 * those it leaves out; an address that two claim is the first one's by node id, on every node alike.
 */
export const configPeers: Controller = defineController({
  name: 'kubespan.PeerSpecController',
  inputs: { config: weak(KubeSpanConfig, { id: 'kubespan' }), affiliates: weak(Affiliate), identity: weak(Identity, { id: 'local' }) },
  outputs: { peers: exclusive(KubeSpanPeerSpec) },
  reconcile({ config, affiliates, identity, peers, log }) {
    const self = identity.get('local')?.spec.nodeId
    if (!config.get('kubespan')?.spec.enabled || !self) return
    let taken = new PrefixSet()
    const known = affiliates.list().toSorted((a, b) => (a.metadata.id < b.metadata.id ? -1 : 1))
    for (const { spec } of known) {
      const { nodeId, nodename, hostname, addresses, kubespan } = spec
      if (nodeId === self || !kubespan?.publicKey) continue
      if (peers.get(kubespan.publicKey) === undefined) log.debug('a peer comes', { node: nodename ?? hostname })
      let wanted: PrefixSet
      try {
        const excluded = PrefixSet.of(kubespan.excludeAdvertisedNetworks)
        const advertised = PrefixSet.of([...addresses, ...kubespan.additionalAddresses]).without(excluded)
        wanted = advertised.with(PrefixSet.of([addressOnly(kubespan.address)]))
      } catch (error) {
        log.warn('a peer advertises what is no network', { node: nodename ?? hostname, error })
        continue
      }
      if (wanted.overlaps(taken)) log.warn('peers claim the same addresses', { node: nodename ?? hostname })
      const allowed = wanted.without(taken)
      taken = taken.with(wanted)
      peers.put(kubespan.publicKey, {
        address: addressOnly(kubespan.address),
        allowedIPs: allowed.networks(),
        endpoints: kubespan.endpoints,
        label: nodename ?? hostname,
      })
    }
  },
})
