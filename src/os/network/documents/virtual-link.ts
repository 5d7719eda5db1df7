import { described, listOf, mac, needed, oneOf, section, text, unsigned } from '../../../document/fields.ts'
import { defineDocument } from '../../../document/kind.ts'
import { linkFields, linkRules, routingTable } from './link-fields.ts'

/** Configures a VLAN on a parent link. */
export const VLANConfig = defineDocument({
  kind: 'VLANConfig',
  description: 'A VLAN on a parent link.',
  nameKey: 'name',
  schema: section({
    name: described(text, 'The unique name of this document among those of its kind.'),
    vlanID: described(needed(unsigned(16)), 'The number of the VLAN, from 1 to 4094.'),
    vlanMode: described(oneOf('802.1q', '802.1ad'), 'The protocol of the tags.'),
    parent: described(needed(text), 'The link below.'),
    ...linkFields,
  }),
  rules(vlan, report) {
    linkRules(vlan, report)
    if (!vlan.vlanID || vlan.vlanID > 4094) report.error(['vlanID'], 'a VLAN has an ID from 1 to 4094')
    if (!vlan.parent) report.error(['parent'], 'the parent link of the VLAN is required')
  },
})

/** Configures a VRF: links with a separate routing table. */
export const VRFConfig = defineDocument({
  kind: 'VRFConfig',
  description: 'A VRF: links with a separate routing table.',
  nameKey: 'name',
  schema: section({
    name: described(text, 'The unique name of this document among those of its kind.'),
    hardwareAddr: described(mac, 'The hardware address.'),
    links: described(listOf(text), 'The links that belong to it.'),
    table: described(needed(routingTable), 'The routing table that belongs to it.'),
    ...linkFields,
  }),
  rules(vrf, report) {
    linkRules(vrf, report)
    if (!vrf.table || !/^\d+$/.test(vrf.table)) report.error(['table'], 'a separate table is required: a number from 1 to 252')
  },
})
