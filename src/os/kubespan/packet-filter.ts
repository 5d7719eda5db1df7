/** How packets get into the mesh: those for peers are marked, and a routing rule sends what is marked into the link. */
import type { SpecOf } from '../../cosi/resource.ts'
import type { NfTablesChain } from '../network/resources/nf-tables-chain.ts'
import { marks } from './mesh.ts'

type Chain = SpecOf<typeof NfTablesChain>

/**
 * The two chains: what passes through, and what this machine sends. WireGuard's own packets are marked by it and go the
 * normal way; packets to peers get our mark, all others none.
 */
export function meshChains(networks: readonly string[], mtu: number): Map<string, Chain> {
  const own = { matchMark: { mask: marks.mask, value: marks.wireguard }, verdict: 'accept' } as const
  const toPeers = { matchDestinationAddress: { includeSubnets: [...networks] } }
  const rules = [
    // What begins a connection says how much fits into the link.
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
        type: 'route', // a packet that is marked is routed anew
        hook: 'output',
        rules: [own, { matchOIfName: { interfaceName: ['lo'], operator: '==' }, verdict: 'accept' }, ...(peers ? rules : [])],
      },
    ],
  ])
}
