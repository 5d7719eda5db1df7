import { flag, ip, listOf, mac, needed, oneOf, section, text, unsigned } from '../../../document/fields.ts'
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
    name: text,
    hardwareAddr: mac,
    links: listOf(text),
    bondMode: needed(oneOf(...bondValues.mode)),
    miimon: unsigned(32),
    updelay: unsigned(32),
    downdelay: unsigned(32),
    useCarrier: flag,
    xmitHashPolicy: oneOf(...bondValues.xmitHashPolicy),
    arpInterval: unsigned(32),
    arpIpTargets: listOf(ip),
    nsIp6Targets: listOf(ip),
    arpValidate: oneOf(...bondValues.arpValidate),
    arpAllTargets: oneOf(...bondValues.arpAllTargets),
    lacpRate: oneOf(...bondValues.lacpRate),
    failOverMac: oneOf(...bondValues.failOverMac),
    adSelect: oneOf(...bondValues.adSelect),
    adActorSysPrio: unsigned(16),
    adUserPortKey: unsigned(16),
    adLACPActive: oneOf('on', 'off'),
    primaryReselect: oneOf(...bondValues.primaryReselect),
    resendIGMP: unsigned(32),
    minLinks: unsigned(32),
    lpInterval: unsigned(32),
    packetsPerSlave: unsigned(32),
    numPeerNotif: unsigned(8),
    tlbLogicalLb: unsigned(8),
    allSlavesActive: unsigned(8),
    peerNotifDelay: unsigned(32),
    missedMax: unsigned(8),
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
