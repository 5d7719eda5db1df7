import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { cidr, integer } from '../../values.ts'

/** A chain of packet filter rules. */
export const NfTablesChain = defineResource({
  type: 'NfTablesChains.net.talos.dev',
  namespace: 'network',
  displayType: 'NfTablesChain',
  aliases: ['chain', 'chains'],
  columns: { Type: '{.type}', Hook: '{.hook}', Priority: '{.priority}', Policy: '{.policy}' },
  spec: v.object({
    type: v.string(),
    hook: v.string(),
    priority: v.string(),
    policy: v.string(),
    rules: v.optional(
      v.array(
        v.object({
          matchIIfName: v.optional(v.object({ interfaceName: v.optional(v.array(v.string()), []), operator: v.string() })),
          matchOIfName: v.optional(v.object({ interfaceName: v.optional(v.array(v.string()), []), operator: v.string() })),
          matchMark: v.optional(v.object({ mask: v.optional(integer), xor: v.optional(integer), value: v.optional(integer) })),
          matchConntrackState: v.optional(v.object({ states: v.optional(v.array(v.string()), []) })),
          matchSourceAddress: v.optional(
            v.object({
              includeSubnets: v.optional(v.array(cidr)),
              excludeSubnets: v.optional(v.array(cidr)),
              invert: v.optional(v.boolean()),
            }),
          ),
          matchDestinationAddress: v.optional(
            v.object({
              includeSubnets: v.optional(v.array(cidr)),
              excludeSubnets: v.optional(v.array(cidr)),
              invert: v.optional(v.boolean()),
            }),
          ),
          matchLayer4: v.optional(
            v.object({
              protocol: v.string(),
              matchSourcePort: v.optional(v.object({ ranges: v.optional(v.array(v.object({ lo: integer, hi: integer }))) })),
              matchDestinationPort: v.optional(v.object({ ranges: v.optional(v.array(v.object({ lo: integer, hi: integer }))) })),
              matchICMPType: v.optional(v.object({ types: v.optional(v.array(integer), []) })),
            }),
          ),
          matchLimit: v.optional(v.object({ packetRatePerSecond: integer })),
          clampMSS: v.optional(v.object({ mtu: integer })),
          setMark: v.optional(v.object({ mask: v.optional(integer), xor: v.optional(integer), value: v.optional(integer) })),
          anonymousCounter: v.optional(v.boolean()),
          verdict: v.optional(v.string()),
        }),
      ),
      [],
    ),
  }),
})
