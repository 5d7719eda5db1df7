import { flag, listOf, mac, section, text } from '../../../document/fields.ts'
import { defineDocument } from '../../../document/kind.ts'
import { linkFields, linkRules } from './link-fields.ts'

/** Configures a bridge. */
export const BridgeConfig = defineDocument({
  kind: 'BridgeConfig',
  description: 'A bridge: a software switch.',
  nameKey: 'name',
  schema: section({
    name: text,
    hardwareAddr: mac,
    links: listOf(text),
    stp: section({ enabled: flag }),
    vlan: section({ filtering: flag }),
    ...linkFields,
  }),
  rules: linkRules,
})
