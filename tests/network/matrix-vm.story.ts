/** The matrix of ways to an address on a kernel that makes links of every kind, and over a cable that loses and delays. */
import { expect, test } from 'bun:test'
import { missingFor, runGuest } from './lab/guest-machine.ts'

const programs = ['dnsmasq', 'nsenter']
const modules = ['8021q', 'bonding', 'bridge', 'veth', 'sch_netem', 'af_packet']
const needs = missingFor(...programs)
if (needs.length > 0) console.log(`skipped: needs ${needs.join(', ')}`)

test.skipIf(needs.length > 0)(
  'every way to an address over links of every kind and over a bad cable',
  async () => {
    const lines = await runGuest('matrix-guest.ts', modules, { programs, deadline: 3_400_000 })
    expect(lines.filter((line) => line.startsWith('failed'))).toEqual([])
    expect(lines.at(-1)).toBe('end')
    const [, scenarios] = /^scenarios: (\d+)$/.exec(lines[0] ?? '') ?? []
    expect(lines.filter((line) => line.startsWith('ok')).length).toBe(Number(scenarios))
  },
  3_600_000,
)
