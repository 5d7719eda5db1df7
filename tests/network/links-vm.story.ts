/** Links that this machine's kernel may not have, in a virtual machine whose kernel has them. */
import { expect, test } from 'bun:test'
import { missingFor, runGuest } from './lab/guest-machine.ts'

const needs = missingFor()
if (needs.length > 0) console.log(`skipped: needs ${needs.join(', ')}`)

test.skipIf(needs.length > 0)(
  'bonds, VLANs, VRFs, dummies, WireGuard and VLAN filtering on a kernel that has them',
  async () => {
    const lines = await runGuest('guest.ts', ['8021q', 'bonding', 'bridge', 'dummy', 'veth', 'vrf', 'wireguard'], { deadline: 900_000 })
    expect(lines.filter((line) => line.startsWith('failed'))).toEqual([])
    expect(lines.at(-1)).toBe('end')
    expect(lines.filter((line) => line.startsWith('ok')).length).toBe(22)
  },
  1_000_000,
)
