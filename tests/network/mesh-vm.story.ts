/** Two nodes of a mesh, each behind an address translation, in a virtual machine whose kernel has WireGuard. */
import { expect, test } from 'bun:test'
import { missingFor, runGuest } from './lab/guest-machine.ts'

const needs = missingFor('nft')
if (needs.length > 0) console.log(`skipped: needs ${needs.join(', ')}`)

test.skipIf(needs.length > 0)(
  'pods of two hidden nodes reach each other, a change of address is followed, the outside is reached the normal way',
  async () => {
    const modules = ['crc32c_generic', 'veth', 'wireguard', 'nf_tables', 'nf_conntrack', 'nft_ct', 'nft_chain_nat', 'nft_masq']
    const lines = await runGuest('mesh-guest.ts', modules, { programs: ['nft'], deadline: 900_000 })
    expect(lines.filter((line) => line.startsWith('failed'))).toEqual([])
    expect(lines.at(-1)).toBe('end')
    expect(lines.filter((line) => line.startsWith('ok')).length).toBe(15)
  },
  1_000_000,
)
