import { type Controller, defineController, exclusive, shared, weak } from '../../../cosi/controller.ts'
import type { SpecOf } from '../../../cosi/resource.ts'
import { addressOnly, selects } from '../../../wire/prefix.ts'
import type { Machine } from '../../area.ts'
import { MachineType } from '../../config/resources/machine-type.ts'
import { APIServerConfig } from '../../k8s/resources/api-server-config.ts'
import { Endpoint } from '../../k8s/resources/endpoint.ts'
import { NodeStatus } from '../../k8s/resources/node.ts'
import { Nodename } from '../../k8s/resources/nodename.ts'
import { endpointOf } from '../../kubespan/public.ts'
import { KubeSpanConfig } from '../../kubespan/resources/kube-span-config.ts'
import { KubeSpanIdentity } from '../../kubespan/resources/kube-span-identity.ts'
import { AddressStatus } from '../../network/resources/address.ts'
import { HostnameStatus } from '../../network/resources/hostname.ts'
import { NodeAddress } from '../../network/resources/node-address.ts'
import { Affiliate } from '../resources/affiliate.ts'
import { DiscoveryConfig } from '../resources/discovery-config.ts'
import { Identity } from '../resources/identity.ts'
import { Member } from '../resources/member.ts'

/** The affiliate record that this node publishes about itself. */
export const configLocalAffiliate = ({ version }: Pick<Machine, 'version'>): Controller =>
  defineController({
    name: 'cluster.LocalAffiliateController',
    effects: 'none',
    inputs: {
      discovery: weak(DiscoveryConfig),
      identity: weak(Identity),
      hostname: weak(HostnameStatus),
      nodename: weak(Nodename),
      addresses: weak(NodeAddress),
      type: weak(MachineType),
      apiServer: weak(APIServerConfig),
      nodes: weak(NodeStatus),
      seen: weak(AddressStatus, 'cluster'),
      mesh: weak(KubeSpanConfig),
      meshIdentity: weak(KubeSpanIdentity),
    },
    outputs: { affiliate: shared(Affiliate) },
    reconcile({ discovery, identity, hostname, nodename, addresses, type, apiServer, nodes, seen, mesh, meshIdentity, affiliate }) {
      if (!discovery.get('cluster')?.spec.discoveryEnabled) return
      const id = identity.get('local')?.spec.nodeId
      const name = hostname.get('hostname')?.spec
      const kind = type.get('machine-type')?.spec
      const current = (addresses.get('routed-no-k8s') ?? addresses.get('routed'))?.spec.addresses
      if (!id || !name || !kind || !current) return
      const port = apiServer.get('kube-apiserver')?.spec.localPort
      const own = nodename.get('nodename')?.spec.nodename
      const reachable = current.map(addressOnly)
      const config = mesh.get('kubespan')?.spec
      const key = meshIdentity.get('local')?.spec
      const podNetworks = (own && nodes.get(own)?.spec.podCIDRs) || []
      const public_ = seen.list().map(({ spec }) => addressOnly(spec.address))
      affiliate.put(id, {
        nodeId: id,
        addresses: reachable,
        hostname: name.domainname ? `${name.hostname}.${name.domainname}` : name.hostname,
        nodename: own,
        operatingSystem: `${version.name} (${version.tag})`,
        machineType: kind === 'init' ? 'controlplane' : kind,
        ...(config?.enabled && key && { kubespan: meshPart(config, key, [...reachable, ...public_], podNetworks) }),
        ...(kind !== 'worker' && port && { controlPlane: { port } }),
      })
    },
  })

/** This node's mesh endpoints: its own addresses and those from which others see it, as far as the endpoint filters allow. */
function meshPart(
  { endpointFilters = [], extraEndpoints = [], advertiseKubernetesNetworks, excludeAdvertisedNetworks = [] }: SpecOf<typeof KubeSpanConfig>,
  { publicKey, address }: SpecOf<typeof KubeSpanIdentity>,
  reachable: readonly string[],
  podNetworks: readonly string[],
) {
  const published = [...new Set(reachable)].filter((one) => selects(endpointFilters, one))
  return {
    publicKey,
    address: addressOnly(address),
    additionalAddresses: advertiseKubernetesNetworks ? [...podNetworks] : [],
    endpoints: [...new Set([...published.map((one) => endpointOf(one)), ...extraEndpoints])],
    excludeAdvertisedNetworks: [...excludeAdvertisedNetworks],
  }
}

/** The affiliates from all registries, joined by node. */
export const mergeAffiliates: Controller = defineController({
  name: 'cluster.AffiliateMergeController',
  effects: 'none',
  inputs: { raw: weak(Affiliate, 'cluster-raw') },
  outputs: { affiliates: shared(Affiliate) },
  reconcile({ raw, affiliates }) {
    const merged = new Map<string, SpecOf<typeof Affiliate>>()
    for (const { spec } of raw.list()) {
      const known = merged.get(spec.nodeId)
      merged.set(spec.nodeId, known ? joined(known, spec) : spec)
    }
    for (const [id, spec] of merged) affiliates.put(id, spec)
  },
})

const both = (a: readonly string[], b: readonly string[]) => [...new Set([...a, ...b])]

function joined(known: SpecOf<typeof Affiliate>, spec: SpecOf<typeof Affiliate>): SpecOf<typeof Affiliate> {
  const [one, other] = [known.kubespan, spec.kubespan]
  const kubespan =
    one && other?.publicKey === one.publicKey
      ? {
          ...other,
          additionalAddresses: both(one.additionalAddresses, other.additionalAddresses),
          endpoints: both(one.endpoints, other.endpoints),
          excludeAdvertisedNetworks: both(one.excludeAdvertisedNetworks, other.excludeAdvertisedNetworks),
        }
      : (other ?? one)
  return { ...known, ...spec, addresses: both(known.addresses, spec.addresses), ...(kubespan && { kubespan }) }
}

/** Affiliates that have a name in Kubernetes are members. */
export const observeMembers: Controller = defineController({
  name: 'cluster.MemberController',
  effects: 'none',
  inputs: { affiliates: weak(Affiliate) },
  outputs: { members: exclusive(Member) },
  reconcile({ affiliates, members }) {
    for (const { spec } of affiliates.list()) {
      if (!spec.nodename) continue
      const { nodeId, addresses, hostname, machineType, operatingSystem, controlPlane } = spec
      members.put(spec.nodename, { nodeId, addresses, hostname, machineType, operatingSystem, ...(controlPlane && { controlPlane }) })
    }
  },
})

/** The control plane members, as endpoints. */
export const observeEndpoints: Controller = defineController({
  name: 'cluster.EndpointController',
  effects: 'none',
  inputs: { members: weak(Member) },
  outputs: { endpoints: shared(Endpoint) },
  reconcile({ members, endpoints }) {
    const addresses = members
      .list()
      .filter(({ spec }) => spec.machineType === 'controlplane' || spec.machineType === 'init')
      .flatMap(({ spec }) => spec.addresses)
    if (addresses.length > 0) endpoints.put('discovery', { addresses: [...new Set(addresses)].sort(), hosts: [] })
  },
})
