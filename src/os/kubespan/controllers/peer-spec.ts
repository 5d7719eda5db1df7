import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import type { SpecOf } from '../../../cosi/resource.ts'
import { addressOnly, containsAddress, type Prefix, parsePrefix } from '../../../wire/prefix.ts'
import { PrefixSet } from '../../../wire/prefix-set.ts'
import { Affiliate } from '../../cluster/resources/affiliate.ts'
import { Identity } from '../../cluster/resources/identity.ts'
import { podSubnets } from '../../config/public.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import { kubernetesConfigOf } from '../../k8s/public.ts'
import { KubeSpanConfig } from '../resources/kube-span-config.ts'
import { KubeSpanPeerSpec } from '../resources/kube-span-peer.ts'

/** Shortest accepted prefix lengths (the widest network of RFC 1918 is a /8). Otherwise one node could claim half the Internet. */
const widest = { 4: 8, 6: 16 } as const
/** Default prefix lengths of node networks in the controller manager (--node-cidr-mask-size-ipv4 and -ipv6). */
const nodeBits = { 4: 24, 6: 64 } as const

/**
 * Declares the peers of the mesh: affiliates with a key. A peer receives its own addresses and the networks it advertises,
 * except those it excludes. A node's own addresses take precedence over advertised networks. Of two equal claims the first one
 * by node id wins, on every node alike.
 */
export const configPeers: Controller = defineController({
  name: 'kubespan.PeerSpecController',
  effects: 'none',
  inputs: {
    config: weak(KubeSpanConfig, { id: 'kubespan' }),
    machine: weak(MachineConfig, { id: 'v1alpha1' }),
    affiliates: weak(Affiliate),
    identity: weak(Identity, { id: 'local' }),
  },
  outputs: { peers: exclusive(KubeSpanPeerSpec) },
  reconcile({ config, machine, affiliates, identity, peers, log }) {
    const self = identity.get('local')?.spec.nodeId
    if (!config.get('kubespan')?.spec.enabled || !self) return
    const known = affiliates.list().toSorted((a, b) => (a.metadata.id < b.metadata.id ? -1 : 1))
    const pods = podSubnets(kubernetesConfigOf(machine.get('v1alpha1'))?.cluster)
    const fits = (network: string) => isNarrow(parsePrefix(network), pods)
    const claims = known.flatMap(({ spec }) => {
      if (spec.nodeId === self || !spec.kubespan?.publicKey) return []
      const node = spec.nodename ?? spec.hostname
      if (peers.get(spec.kubespan.publicKey) === undefined) log.debug('peer added', { node })
      try {
        return [
          claimOf(spec, spec.kubespan, (network) => {
            if (fits(network)) return true
            log.warn('peer advertises too wide a network', { node, network })
            return false
          }),
        ]
      } catch (error) {
        log.warn('peer advertises an invalid network', { node, error })
        return []
      }
    })
    // First the nodes' own addresses, then the advertised networks.
    let taken = new PrefixSet()
    const exclusive = claims.map((claim) => {
      const free = claim.own.without(taken)
      taken = taken.with(claim.own)
      return { ...claim, free }
    })
    for (const { spec, kubespan, advertised, own: addresses, free } of exclusive) {
      const node = spec.nodename ?? spec.hostname
      const beyond = advertised.without(addresses)
      if (beyond.overlaps(taken) || free.networks().join() !== addresses.networks().join())
        log.warn('peers claim overlapping addresses', { node })
      const allowed = free.with(beyond.without(taken))
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

/**
 * Whether a node may advertise a network. It must not be as wide as the Internet, and must not contain the cluster's whole pod
 * network unless that is no wider than the pod network of a single node.
 */
function isNarrow(network: Prefix, pods: readonly string[]): boolean {
  const family = network.bytes.length === 4 ? 4 : 6
  if (network.bits < widest[family]) return false
  const within = pods.filter((pod) => network.bits <= parsePrefix(pod).bits && containsAddress(network, pod))
  return within.every((pod) => network.bits === parsePrefix(pod).bits && network.bits >= nodeBits[family])
}

/** Throws for an invalid network. */
function claimOf(spec: Spec, kubespan: Mesh, fits: (network: string) => boolean): Claim {
  const excluded = PrefixSet.of(kubespan.excludeAdvertisedNetworks)
  const networks = kubespan.additionalAddresses.filter(fits)
  return {
    spec,
    kubespan,
    own: PrefixSet.of(spec.addresses)
      .without(excluded)
      .with(PrefixSet.of([addressOnly(kubespan.address)])),
    advertised: PrefixSet.of(networks).without(excluded),
  }
}
