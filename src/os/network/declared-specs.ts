/** Converts declared links to layered specs. */

import type { SpecOf } from '../../cosi/resource.ts'
import { familyOf } from '../../wire/prefix.ts'
import type { DeclaredLink } from './link/declared.ts'
import type { AddressSpec } from './resources/address.ts'
import type { LinkSpec } from './resources/link.ts'
import type { OperatorSpec } from './resources/operator-spec.ts'
import type { RouteSpec } from './resources/route.ts'

type Link = SpecOf<typeof LinkSpec>
type Address = SpecOf<typeof AddressSpec>
type Route = SpecOf<typeof RouteSpec>
type Operator = SpecOf<typeof OperatorSpec>
type Layer = Link['layer']

/** The default route metric. */
export const defaultMetric = 1024

/** Link specs by name: each declared link, and its members with their position in it. `indexOf` returns a link's kernel index. */
export function linkSpecs(
  declared: readonly DeclaredLink[],
  layer: Layer,
  indexOf: (name: string) => number | undefined,
): Map<string, Link> {
  const specs = new Map<string, Link>()
  const add = (name: string, more: Partial<Link>) => {
    const before = specs.get(name) ?? { name, logical: false, up: true, mtu: 0, kind: '', type: 'ether', layer }
    specs.set(name, { ...before, ...more })
  }
  for (const { name, kind, up, mtu, multicast, hardwareAddr, vlan, bond, bridge, vrf, wireguard, members, bridgeMaster } of declared) {
    const primary = bond?.primary === undefined ? undefined : indexOf(bond.primary)
    add(name, {
      ...(!(specs.has(name) && up) && { up }),
      ...(mtu && { mtu }),
      ...(multicast !== undefined && { multicast }),
      ...(hardwareAddr && { hardwareAddr }),
      ...(kind && { logical: true, kind, type: kind === 'wireguard' ? 'nohdr' : 'ether' }),
      ...(vlan && { parentName: vlan.parent, vlan: { vlanID: vlan.vlanID, vlanProtocol: vlan.vlanProtocol } }),
      ...(bond && { bondMaster: { ...bond, primary } }),
      ...(bridge && { bridgeMaster: bridge }),
      ...(vrf && { vrfMaster: vrf }),
      ...(wireguard && { wireguard }),
      ...(bridgeMaster && { bridgeSlave: { masterName: bridgeMaster } }),
    })
    members.forEach((member, slaveIndex) => {
      if (kind === 'bond') add(member, { masterName: name, slaveIndex })
      else if (kind === 'vrf') add(member, { vrfSlave: { masterName: name } })
      else add(member, { bridgeSlave: { masterName: name } })
    })
  }
  return specs
}

/** Address specs by id without layer prefix. */
export function addressSpecs(declared: readonly DeclaredLink[], layer: Layer): Map<string, Address> {
  return new Map(
    declared.flatMap(({ name, addresses }) =>
      addresses.map(({ address, priority }) => {
        const spec = { address, linkName: name, family: familyOf(address), scope: 'global', flags: 'permanent', layer }
        return [`${name}/${address}`, priority ? { ...spec, priority } : spec] as const
      }),
    ),
  )
}

/** The id of a route spec: distinct routes have distinct ids. */
export function routeId({ outLinkName = '', family, gateway, dst, priority = 0, table }: Omit<Route, 'layer'>): string {
  return `${outLinkName && `${outLinkName}/`}${family}/${gateway}/${dst}/${priority}${table === 'main' ? '' : `/${table}`}`
}

/** Route specs by id without layer prefix. */
export function routeSpecs(declared: readonly DeclaredLink[], layer: Layer, protocol = 'static'): Map<string, Route> {
  return new Map(
    declared.flatMap(({ name, routes, vrf }) =>
      routes.map(({ destination, gateway, source, metric, mtu, table }) => {
        const spec: Route = {
          family: familyOf(`${gateway}${destination}${source}`),
          dst: destination,
          src: source,
          gateway,
          outLinkName: name,
          table: vrf && table === 'main' ? vrf.table : table,
          priority: metric ?? defaultMetric,
          scope: gateway || familyOf(destination) === 'inet6' ? 'global' : 'link',
          type: 'unicast',
          flags: '',
          protocol,
          layer,
          ...(mtu && { mtu }),
        }
        return [routeId(spec), spec] as const
      }),
    ),
  )
}

/** Operator specs by id without layer prefix. */
export function operatorSpecs(declared: readonly DeclaredLink[], layer: Layer): Map<string, Operator> {
  const specs = new Map<string, Operator>()
  for (const { name, dhcp4, dhcp6, vips } of declared) {
    if (dhcp4) specs.set(`dhcp4/${name}`, { operator: 'dhcp4', linkName: name, requireUp: true, dhcp4, layer })
    if (dhcp6) specs.set(`dhcp6/${name}`, { operator: 'dhcp6', linkName: name, requireUp: true, dhcp6, layer })
    for (const { ip, cloud } of vips)
      specs.set(`vip/${name}/${ip}`, {
        operator: 'vip',
        linkName: name,
        requireUp: true,
        // The network of a cloud follows its API and no announcement.
        vip: { ip, gratuitousARP: !cloud && familyOf(ip) === 'inet4', ...(cloud && { [cloud.name]: { apiToken: cloud.apiToken } }) },
        layer,
      })
  }
  return specs
}
