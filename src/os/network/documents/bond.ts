import { described, flag, ip, listOf, mac, needed, oneOf, section, text, unsigned } from '../../../document/fields.ts'
import { defineDocument } from '../../../document/kind.ts'
import { linkFields, linkRules } from './link-fields.ts'

/** Option values of the kernel's bonding driver, by number. */
export const bondValues = {
  mode: ['balance-rr', 'active-backup', 'balance-xor', 'broadcast', '802.3ad', 'balance-tlb', 'balance-alb'],
  xmitHashPolicy: ['layer2', 'layer3+4', 'layer2+3', 'encap2+3', 'encap3+4'],
  arpValidate: ['none', 'active', 'backup', 'all', 'filter', 'filter-active', 'filter-backup'],
  arpAllTargets: ['any', 'all'],
  lacpRate: ['slow', 'fast'],
  failOverMac: ['none', 'active', 'follow'],
  adSelect: ['stable', 'bandwidth', 'count'],
  primaryReselect: ['always', 'better', 'failure'],
} as const

/** Configures a bond of several links. */
export const BondConfig = defineDocument({
  kind: 'BondConfig',
  description: 'A bond: several links combined into one.',
  nameKey: 'name',
  schema: section({
    name: described(text, 'The unique name of this document among those of its kind.'),
    hardwareAddr: described(mac, 'The hardware address.'),
    links: described(listOf(text), 'The links that are joined.'),
    bondMode: described(needed(oneOf(...bondValues.mode)), 'How the links share the work.'),
    miimon: described(unsigned(32), 'Milliseconds between looks at the state of the links.'),
    updelay: described(unsigned(32), 'Milliseconds after which a link that came up is used.'),
    downdelay: described(unsigned(32), 'Milliseconds after which a link that went down is left.'),
    useCarrier: described(flag, 'Whether the carrier determines the state of a link.'),
    xmitHashPolicy: described(oneOf(...bondValues.xmitHashPolicy), 'What of a packet decides over which link it goes.'),
    arpInterval: described(unsigned(32), 'Milliseconds between questions to the targets.'),
    arpIpTargets: described(listOf(ip), 'IPv4 addresses that are probed to see whether a link works.'),
    nsIp6Targets: described(listOf(ip), 'IPv6 addresses that are probed to see whether a link works.'),
    arpValidate: described(oneOf(...bondValues.arpValidate), 'Which of the answers are checked.'),
    arpAllTargets: described(oneOf(...bondValues.arpAllTargets), 'Whether one target or all have to answer.'),
    lacpRate: described(oneOf(...bondValues.lacpRate), 'How often the other end is requested to send LACP packets.'),
    failOverMac: described(oneOf(...bondValues.failOverMac), 'Which hardware address the bond has after a change of links.'),
    adSelect: described(oneOf(...bondValues.adSelect), 'Which aggregate is used when there are several.'),
    adActorSysPrio: described(unsigned(16), 'The priority in LACP packets.'),
    adUserPortKey: described(unsigned(16), 'The upper bits of the port key in LACP packets.'),
    adLACPActive: described(oneOf('on', 'off'), 'Whether LACP packets are sent unsolicited.'),
    primaryReselect: described(oneOf(...bondValues.primaryReselect), 'When the primary link takes over again.'),
    resendIGMP: described(unsigned(32), 'How often memberships of groups are reported after a change of links.'),
    minLinks: described(unsigned(32), 'How many links have to work for the bond to be up.'),
    lpInterval: described(unsigned(32), 'Seconds between packets that teach switches where we are.'),
    packetsPerSlave: described(unsigned(32), 'Packets on one link before the next one is used.'),
    numPeerNotif: described(unsigned(8), 'How often a change of links is announced to the neighbours.'),
    tlbLogicalLb: described(unsigned(8), 'Whether the load is rebalanced as it changes.'),
    allSlavesActive: described(unsigned(8), 'Whether packets that arrive twice are handed on.'),
    peerNotifDelay: described(unsigned(32), 'Milliseconds between those messages.'),
    missedMax: described(unsigned(8), 'How many questions may stay without an answer.'),
    ...linkFields,
  }),
  rules(bond, report) {
    linkRules(bond, report)
    if (!bond.links?.length) report.error(['links'], 'at least one link is required')
    if (!bond.bondMode) report.error(['bondMode'], `a bond mode is required: ${bondValues.mode.join(', ')}`)
    if (bond.bondMode === '802.3ad') {
      for (const key of ['miimon', 'updelay', 'downdelay'] as const) {
        if (bond[key] === undefined) report.warning([key], `${key} should be set with 802.3ad`)
      }
    }
  },
})
