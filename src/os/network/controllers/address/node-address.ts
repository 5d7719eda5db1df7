import { type Controller, defineController, exclusive, weak } from '../../../../cosi/controller.ts'
import type { SpecOf } from '../../../../cosi/resource.ts'
import { containsAddress, isIPv6, type Prefix, parsePrefix } from '../../../../wire/prefix.ts'
import { declared } from '../../../config/public.ts'
import { MachineConfig } from '../../../config/resources/machine-config.ts'
import { AddressStatus } from '../../resources/address.ts'
import { LinkStatus } from '../../resources/link.ts'
import { NodeAddress, NodeAddressFilter, NodeAddressSortAlgorithm } from '../../resources/node-address.ts'

type Status = SpecOf<typeof AddressStatus>

/** Declares the sort order of node addresses. */
export const configAddressOrder: Controller = defineController({
  name: 'network.NodeAddressSortAlgorithmController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }) },
  outputs: { algorithm: exclusive(NodeAddressSortAlgorithm) },
  reconcile({ config, algorithm }) {
    algorithm.put('default', { algorithm: declared(config.get('v1alpha1'))?.machine.features?.nodeAddressSortAlgorithm ?? 'v1' })
  },
})

/**
 * Publishes the node's addresses: the first found (`default`, stable as long as it exists), the present ones (`current`),
 * those that other machines can route to (`routed`), all ever seen (`accumulative`), and each of these narrowed by filters.
 */
export const observeNodeAddresses: Controller = defineController({
  name: 'network.NodeAddressController',
  effects: 'none',
  inputs: {
    addresses: weak(AddressStatus),
    links: weak(LinkStatus),
    filters: weak(NodeAddressFilter),
    order: weak(NodeAddressSortAlgorithm),
  },
  outputs: { sets: exclusive(NodeAddress) },
  reconcile({ addresses, links, filters, order, sets }) {
    const algorithm = order.get('default')?.spec.algorithm
    if (!algorithm) return
    const sort = algorithm === 'v2' ? byPrefix : byLink
    const up = new Set(
      links.list().flatMap(({ metadata, spec }) => (spec.linkState || spec.operationalState === 'unknown' ? [metadata.id] : [])),
    )
    const usable = addresses
      .list()
      .filter(({ spec }) => spec.scope === 'global' && spec.linkName !== 'lo' && (up.has(spec.linkName) || isExternal(spec)))
    const found = usable.map(({ spec }) => spec).filter(({ address, flags }) => !/tentative|dadfailed/.test(flags) && !isLocal(address))
    const current = [...new Set(found.sort(sort).map(({ address }) => address))]
    const tunnelled = new Set(found.flatMap(({ address, linkName }) => (tunnels.has(linkName) ? [address] : [])))
    const external = new Set(found.flatMap((status) => (isExternal(status) ? [status.address] : [])))
    const own = current.filter((address) => !external.has(address))
    const direct = own.filter((address) => !isSharedAddress(address) && !tunnelled.has(address))
    const before = sets.get('default')?.spec.addresses[0]
    const first = before && own.includes(before) ? before : (direct[0] ?? own[0])
    const accumulated = [...new Set([...(sets.get('accumulative')?.spec.addresses ?? []), ...current])]
    const bases: Record<string, string[]> = {
      current,
      routed: direct,
      accumulative: accumulated,
    }
    if (first) sets.put('default', { addresses: [first], sortAlgorithm: algorithm })
    for (const [name, list] of Object.entries(bases)) {
      sets.put(name, { addresses: list, sortAlgorithm: algorithm })
      for (const { metadata, spec } of filters.list())
        sets.put(`${name}-${metadata.id}`, { addresses: list.filter((address) => passes(address, spec)), sortAlgorithm: algorithm })
    }
  },
})

/** A public address that the platform maps to the machine (1:1 NAT): reachable from outside, assigned to no link. */
const isExternal = ({ linkName }: Status) => linkName === 'external'

/** Overlay links. Their peers are reached by other addresses, so theirs are no endpoints. */
const tunnels = new Set(['kubespan', 'siderolink', 'siderolinktun'])

/** A KubeSpan or management address (a single unique local address): not routed by the network. */
function isSharedAddress(address: string): boolean {
  return address.startsWith('fd') && address.endsWith('/128')
}

/** The node's own resolver address and other link-local addresses: never published. */
function isLocal(address: string): boolean {
  return address.startsWith('169.254.') || address.startsWith('fe80:')
}

function passes(address: string, { includeSubnets, excludeSubnets }: SpecOf<typeof NodeAddressFilter>): boolean {
  const host = address.slice(0, address.indexOf('/'))
  const within = (subnet: string) => {
    const prefix: Prefix = parsePrefix(subnet)
    return containsAddress(prefix, host)
  }
  if (includeSubnets.length > 0 && !includeSubnets.some(within)) return false
  return !excludeSubnets.some(within)
}

/** v1: by link index, then by the address as text. */
function byLink(a: Status, b: Status): number {
  return a.linkIndex - b.linkIndex || compareAddresses(a.address, b.address)
}

/** v2: shorter prefixes first within a family, so that an address with its network precedes a single one. */
function byPrefix(a: Status, b: Status): number {
  const length = ({ address }: Status) => Number(address.slice(address.indexOf('/') + 1))
  return Number(a.family === 'inet6') - Number(b.family === 'inet6') || length(a) - length(b) || byLink(a, b)
}

function compareAddresses(a: string, b: string): number {
  const six = (text: string) => Number(isIPv6(text))
  return six(a) - six(b) || a.localeCompare(b, 'en', { numeric: true })
}
