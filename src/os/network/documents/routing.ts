import { cidr, described, isCidr, needed, oneOf, section, text, unsigned } from '../../../document/fields.ts'
import { defineDocument } from '../../../document/kind.ts'
import { routingTable } from './link-fields.ts'

/** Configures a blackhole route. */
export const BlackholeRouteConfig = defineDocument({
  kind: 'BlackholeRouteConfig',
  description: 'A blackhole route: packets to this destination are dropped.',
  nameKey: 'name',
  schema: section({
    name: described(text, 'The unique name of this document among those of its kind.'),
    metric: described(unsigned(32), 'The lower, the better the route.'),
  }),
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
    name: described(text, 'The unique name of this document among those of its kind.'),
    src: described(cidr, 'Where packets come from.'),
    dst: described(cidr, 'Where packets go.'),
    table: described(needed(routingTable), 'The table that is looked into.'),
    action: described(oneOf('unspec', 'unicast', 'blackhole', 'unreachable', 'prohibit'), 'What happens to packets it fits.'),
    iifName: described(text, 'The link packets came by.'),
    oifName: described(text, 'The link packets leave by.'),
    fwMark: described(unsigned(32), 'The mark packets carry.'),
    fwMask: described(unsigned(32), 'The bits of the mark that count.'),
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
