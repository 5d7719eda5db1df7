import { mac, section, text } from '../../../document/fields.ts'
import { defineDocument } from '../../../document/kind.ts'
import { linkFields, linkRules } from './link-fields.ts'

/** A link that leads nowhere, to hold addresses. */
export const DummyLinkConfig = defineDocument({
  kind: 'DummyLinkConfig',
  description: 'A link that leads nowhere, to hold addresses.',
  nameKey: 'name',
  schema: section({ name: text, hardwareAddr: mac, ...linkFields }),
  rules: linkRules,
})
