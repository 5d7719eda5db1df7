/** Routes packets into the mesh: packets for peers are marked, and a routing rule sends marked packets into the link. */
import type { SpecOf } from '../../cosi/resource.ts'
import type { NfTablesChain } from '../network/resources/nf-tables-chain.ts'
import { marks } from './mesh.ts'

type Chain = SpecOf<typeof NfTablesChain>

/**
 * The chains for forwarded and for local packets. WireGuard marks its own packets, which are routed normally. Packets for peers
 * get the mesh mark, all others none.
 */
export function meshChains(networks: readonly string[], mtu: number): Map<string, Chain> {
  const own = { matchMark: { mask: marks.mask, value: marks.wireguard }, verdict: 'accept' } as const
  const toPeers = { matchDestinationAddress: { includeSubnets: [...networks] } }
  const rules = [
    // The MSS of a new connection must fit into the link.
    { ...toPeers, matchLayer4: { protocol: 'tcp' }, clampMSS: { mtu } },
    { ...toPeers, setMark: { mask: ~marks.mask >>> 0, xor: marks.force }, verdict: 'accept' },
  ]
  const common = { priority: 'filter', policy: 'accept' } as const
  const peers = networks.length > 0
  return new Map([
    ['kubespan_prerouting', { ...common, type: 'filter', hook: 'prerouting', rules: [own, ...(peers ? rules : [])] }],
    [
      'kubespan_outgoing',
      {
        ...common,
        type: 'route', // setting a mark triggers a new routing decision
        hook: 'output',
        rules: [own, { matchOIfName: { interfaceName: ['lo'], operator: '==' }, verdict: 'accept' }, ...(peers ? rules : [])],
      },
    ],
  ])
}
