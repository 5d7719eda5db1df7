import * as v from 'valibot'
import { cidr, described, oneOf, replacedListOf, section, text } from '../../../document/fields.ts'
import { defineDocument } from '../../../document/kind.ts'
import { requireName } from './link-fields.ts'

const ports = v.pipe(
  v.string(),
  v.check((value) => portRange(value) !== undefined, '{} is not a port or a range of ports, like 80 or "8000-8100"'),
)

/** First and last port of a range: `80`, `8000-8100`. */
export function portRange(written: string): [number, number] | undefined {
  const match = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(written)
  if (!match) return undefined
  const low = Number(match[1])
  const high = Number(match[2] ?? match[1])
  return low <= high && high < 65536 ? [low, high] : undefined
}

/** Configures the firewall's default action for ingress traffic. */
export const NetworkDefaultActionConfig = defineDocument({
  kind: 'NetworkDefaultActionConfig',
  description: 'Default action of the firewall for ingress traffic that no rule matches.',
  schema: section({ ingress: described(oneOf('accept', 'block'), 'What happens to connections that no rule names.') }),
})

/** Configures an ingress rule of the firewall. */
export const NetworkRuleConfig = defineDocument({
  kind: 'NetworkRuleConfig',
  description: 'An ingress rule of the firewall: which subnets may reach which ports.',
  nameKey: 'name',
  schema: section({
    name: described(text, 'The unique name of this document among those of its kind.'),
    portSelector: described(
      section({
        ports: described(replacedListOf(ports), 'Ports and ranges of ports.'),
        protocol: described(oneOf('tcp', 'udp', 'icmp', 'icmpv6'), 'The protocol.'),
      }),
      'Which ports.',
    ),
    ingress: described(
      replacedListOf(section({ subnet: described(cidr, 'A network that may.'), except: described(cidr, 'A part of it that may not.') })),
      'Who may connect.',
    ),
  }),
  rules({ name, portSelector, ingress }, report) {
    requireName(name, report)
    const ranges = (portSelector?.ports ?? []).map(portRange).filter((range) => range !== undefined)
    if (ranges.length === 0) report.error(['portSelector', 'ports'], 'at least one port is required')
    const sorted = ranges.toSorted(([a], [b]) => a - b)
    if (sorted.slice(1).some(([low], index) => low <= (sorted[index]?.[1] ?? 0))) {
      report.error(['portSelector', 'ports'], 'port ranges overlap')
    }
    for (const [index, { subnet }] of (ingress ?? []).entries()) {
      if (!subnet) report.error(['ingress', index, 'subnet'], 'a subnet is required')
    }
  },
})
