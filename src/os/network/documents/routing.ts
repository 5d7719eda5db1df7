import { cidr, isCidr, needed, oneOf, section, text, unsigned } from '../../../document/fields.ts'
import { defineDocument } from '../../../document/kind.ts'
import { routingTable } from './link-fields.ts'

/** Configures a blackhole route. */
export const BlackholeRouteConfig = defineDocument({
  kind: 'BlackholeRouteConfig',
  description: 'A blackhole route: packets to this destination are dropped.',
  nameKey: 'name',
  schema: section({ name: text, metric: unsigned(32) }),
  rules({ name }, report) {
    if (!name || !isCidr(name)) report.error(['name'], 'the name has to be the destination, like "10.0.0.0/8"')
  },
})

/** Configures a routing policy rule. */
export const RoutingRuleConfig = defineDocument({
  kind: 'RoutingRuleConfig',
  description: 'A routing policy rule: which packets use which routing table.',
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
