import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import type { SpecOf } from '../../../cosi/resource.ts'
import { addressOnly, parsePrefix } from '../../../wire/prefix.ts'
import { PrefixSet } from '../../../wire/prefix-set.ts'
import { Affiliate } from '../../cluster/resources/affiliate.ts'
import { Identity } from '../../cluster/resources/identity.ts'
import { KubeSpanConfig } from '../resources/kube-span-config.ts'
import { KubeSpanPeerSpec } from '../resources/kube-span-peer.ts'

/** No network of pods or of a node is wider (RFC 1918 ends at /8); half the Internet through one node's claim would be. */
const widest = { 4: 8, 6: 16 } as const

/**
 * The peers of the mesh: affiliates that have a key. To a peer go its own addresses and the networks it advertises, but for
 * those it leaves out. What a node is itself comes before what any other advertises; an address that two claim alike is the
 * first one's by node id, on every node alike.
 */
export const configPeers: Controller = defineController({
  name: 'kubespan.PeerSpecController',
  inputs: { config: weak(KubeSpanConfig, { id: 'kubespan' }), affiliates: weak(Affiliate), identity: weak(Identity, { id: 'local' }) },
  outputs: { peers: exclusive(KubeSpanPeerSpec) },
  reconcile({ config, affiliates, identity, peers, log }) {
    const self = identity.get('local')?.spec.nodeId
    if (!config.get('kubespan')?.spec.enabled || !self) return
    const known = affiliates.list().toSorted((a, b) => (a.metadata.id < b.metadata.id ? -1 : 1))
    const claims = known.flatMap(({ spec }) => {
      if (spec.nodeId === self || !spec.kubespan?.publicKey) return []
      const node = spec.nodename ?? spec.hostname
      if (peers.get(spec.kubespan.publicKey) === undefined) log.debug('a peer comes', { node })
      try {
        return [claimOf(spec, spec.kubespan, (network) => log.warn('a peer advertises too wide a network', { node, network }))]
      } catch (error) {
        log.warn('a peer advertises what is no network', { node, error })
        return []
      }
    })
    // First what the nodes are, then what they advertise beyond that.
    let taken = new PrefixSet()
    const own = claims.map((claim) => {
      const allowed = claim.own.without(taken)
      taken = taken.with(claim.own)
      return allowed
    })
    for (const [index, { spec, kubespan, advertised, own: addresses }] of claims.entries()) {
      const node = spec.nodename ?? spec.hostname
      const beyond = advertised.without(addresses)
      if (beyond.overlaps(taken) || own[index]!.networks().join() !== addresses.networks().join())
        log.warn('peers claim the same addresses', { node })
      const allowed = own[index]!.with(beyond.without(taken))
      taken = taken.with(beyond)
      peers.put(kubespan.publicKey, {
        address: addressOnly(kubespan.address),
        allowedIPs: allowed.networks(),
        endpoints: kubespan.endpoints,
        label: node,
      })
    }
  },
})

type Spec = SpecOf<typeof Affiliate>
type Mesh = NonNullable<Spec['kubespan']>

interface Claim {
  readonly spec: Spec
  readonly kubespan: Mesh
  readonly own: PrefixSet
  readonly advertised: PrefixSet
}

/** Throws for what is no network. */
function claimOf(spec: Spec, kubespan: Mesh, refuse: (network: string) => void): Claim {
  const excluded = PrefixSet.of(kubespan.excludeAdvertisedNetworks)
  const networks = kubespan.additionalAddresses.filter((network) => {
    const { bits, bytes } = parsePrefix(network)
    const fits = bits >= widest[bytes.length === 4 ? 4 : 6]
    if (!fits) refuse(network)
    return fits
  })
  return {
    spec,
    kubespan,
    own: PrefixSet.of(spec.addresses)
      .without(excluded)
      .with(PrefixSet.of([addressOnly(kubespan.address)])),
    advertised: PrefixSet.of(networks).without(excluded),
  }
}
