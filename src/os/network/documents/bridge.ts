import { described, flag, listOf, mac, section, text } from '../../../document/fields.ts'
import { defineDocument } from '../../../document/kind.ts'
import { linkFields, linkRules } from './link-fields.ts'

/** Configures a bridge. */
export const BridgeConfig = defineDocument({
  kind: 'BridgeConfig',
  description: 'A bridge: a software switch.',
  nameKey: 'name',
  schema: section({
    name: described(text, 'The unique name of this document among those of its kind.'),
    hardwareAddr: described(mac, 'The hardware address.'),
    links: described(listOf(text), 'The ports of the bridge.'),
    stp: described(section({ enabled: described(flag, 'Switches this on.') }), 'The spanning tree protocol.'),
    vlan: described(section({ filtering: described(flag, 'Keeps the VLANs of the ports apart.') }), 'How the bridge treats VLANs.'),
    ...linkFields,
  }),
  rules: linkRules,
})
