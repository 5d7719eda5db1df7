import { listOf, mac, needed, oneOf, section, text, unsigned } from '../../../document/fields.ts'
import { defineDocument } from '../../../document/kind.ts'
import { linkFields, linkRules, routingTable } from './link-fields.ts'

/** Configures a VLAN on a parent link. */
export const VLANConfig = defineDocument({
  kind: 'VLANConfig',
  description: 'A VLAN on a parent link.',
  nameKey: 'name',
  schema: section({ name: text, vlanID: needed(unsigned(16)), vlanMode: oneOf('802.1q', '802.1ad'), parent: needed(text), ...linkFields }),
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
  schema: section({ name: text, hardwareAddr: mac, links: listOf(text), table: needed(routingTable), ...linkFields }),
  rules(vrf, report) {
    linkRules(vrf, report)
    if (!vrf.table || !/^\d+$/.test(vrf.table)) report.error(['table'], 'a separate table is required: a number from 1 to 252')
  },
})
