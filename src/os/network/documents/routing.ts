import { cidr, isCidr, needed, oneOf, section, text, unsigned } from '../../../document/fields.ts'
import { defineDocument } from '../../../document/kind.ts'
import { routingTable } from './link-fields.ts'

/** A destination that is dropped. */
export const BlackholeRouteConfig = defineDocument({
  kind: 'BlackholeRouteConfig',
  description: 'A destination that is dropped.',
  nameKey: 'name',
  schema: section({ name: text, metric: unsigned(32) }),
  rules({ name }, report) {
    if (!name || !isCidr(name)) report.error(['name'], 'the name has to be the destination, like "10.0.0.0/8"')
  },
})

/** Which routing table is asked for which packets. */
export const RoutingRuleConfig = defineDocument({
  kind: 'RoutingRuleConfig',
  description: 'Which routing table is asked for which packets.',
  nameKey: 'name',
  schema: section({
    name: text,
    src: cidr,
    dst: cidr,
    table: needed(routingTable),
    action: oneOf('unspec', 'unicast', 'blackhole', 'unreachable', 'prohibit'),
    iifName: text,
    oifName: text,
    fwMark: unsigned(32),
    fwMask: unsigned(32),
  }),
  rules({ name = '', table, action, fwMark, fwMask }, report) {
    const priority = /^\d+$/.test(name) ? Number(name) : 0
    if (priority < 1 || priority > 32765 || priority === 32500) {
      report.error(['name'], 'the name has to be the priority, from 1 to 32765 and not 32500')
    }
    if (!table && (action === undefined || action === 'unicast' || action === 'unspec')) report.error(['table'], 'a table is required')
    if (fwMask && !fwMark) report.error(['fwMask'], 'a mask needs a mark')
  },
})
