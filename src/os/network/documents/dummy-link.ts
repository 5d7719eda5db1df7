import { described, mac, section, text } from '../../../document/fields.ts'
import { defineDocument } from '../../../document/kind.ts'
import { linkFields, linkRules } from './link-fields.ts'

/** Configures a dummy link, which only holds addresses. */
export const DummyLinkConfig = defineDocument({
  kind: 'DummyLinkConfig',
  description: 'A dummy link, which only holds addresses.',
  nameKey: 'name',
  schema: section({
    name: described(text, 'The unique name of this document among those of its kind.'),
    hardwareAddr: described(mac, 'The hardware address.'),
    ...linkFields,
  }),
  rules: linkRules,
})
