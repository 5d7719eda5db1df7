import { type Controller, defineController, exclusive, shared, weak } from '../../../cosi/controller.ts'
import type { SpecOf } from '../../../cosi/resource.ts'
import type { Machine } from '../../area.ts'
import { MachineType } from '../../config/resources/machine-type.ts'
import { APIServerConfig } from '../../k8s/resources/api-server-config.ts'
import { Endpoint } from '../../k8s/resources/endpoint.ts'
import { Nodename } from '../../k8s/resources/nodename.ts'
import { HostnameStatus } from '../../network/resources/hostname-status.ts'
import { NodeAddress } from '../../network/resources/node-address.ts'
import { Affiliate } from '../resources/affiliate.ts'
import { DiscoveryConfig } from '../resources/discovery-config.ts'
import { Identity } from '../resources/identity.ts'
import { Member } from '../resources/member.ts'

/** What this node tells the others of itself. */
export const configLocalAffiliate = ({ version }: Pick<Machine, 'version'>): Controller =>
  defineController({
    name: 'cluster.LocalAffiliateController',
    inputs: {
      discovery: weak(DiscoveryConfig),
      identity: weak(Identity),
      hostname: weak(HostnameStatus),
      nodename: weak(Nodename),
      addresses: weak(NodeAddress),
      type: weak(MachineType),
      apiServer: weak(APIServerConfig),
    },
    outputs: { affiliate: shared(Affiliate) },
    reconcile({ discovery, identity, hostname, nodename, addresses, type, apiServer, affiliate }) {
      if (!discovery.get('cluster')?.spec.discoveryEnabled) return
      const id = identity.get('local')?.spec.nodeId
      const name = hostname.get('hostname')?.spec
      const kind = type.get('machine-type')?.spec
      const current = (addresses.get('routed-no-k8s') ?? addresses.get('routed'))?.spec.addresses
      if (!id || !name || !kind || !current) return
      const port = apiServer.get('kube-apiserver')?.spec.localPort
      affiliate.put(id, {
        nodeId: id,
        addresses: current.map((address) => address.slice(0, address.indexOf('/'))),
        hostname: name.domainname ? `${name.hostname}.${name.domainname}` : name.hostname,
        nodename: nodename.get('nodename')?.spec.nodename,
        operatingSystem: `${version.name} (${version.tag})`,
        machineType: kind === 'init' ? 'controlplane' : kind,
        ...(kind !== 'worker' && port ? { controlPlane: { port } } : {}),
      })
    },
  })

/** What the registries tell of others, joined by node. */
export const mergeAffiliates: Controller = defineController({
  name: 'cluster.AffiliateMergeController',
  inputs: { raw: weak(Affiliate, 'cluster-raw') },
  outputs: { affiliates: shared(Affiliate) },
  reconcile({ raw, affiliates }) {
    const merged = new Map<string, SpecOf<typeof Affiliate>>()
    for (const { spec } of raw.list()) {
      const known = merged.get(spec.nodeId)
      merged.set(spec.nodeId, known ? { ...known, ...spec, addresses: [...new Set([...known.addresses, ...spec.addresses])] } : spec)
    }
    for (const [id, spec] of merged) affiliates.put(id, spec)
  },
})

/** Affiliates that have a name in Kubernetes are members. */
export const observeMembers: Controller = defineController({
  name: 'cluster.MemberController',
  inputs: { affiliates: weak(Affiliate) },
  outputs: { members: exclusive(Member) },
  reconcile({ affiliates, members }) {
    for (const { spec } of affiliates.list()) {
      if (!spec.nodename) continue
      const { nodeId, addresses, hostname, machineType, operatingSystem, controlPlane } = spec
      members.put(spec.nodename, { nodeId, addresses, hostname, machineType, operatingSystem, ...(controlPlane ? { controlPlane } : {}) })
    }
  },
})

/** The members that run the control plane, as endpoints. */
export const observeEndpoints: Controller = defineController({
  name: 'cluster.EndpointController',
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
