import { flag, listOf, mapOf, oneOf, section, text, unsigned } from '../../../document/fields.ts'
import { defineDocument } from '../../../document/kind.ts'
import { requireName } from './link-fields.ts'

/** Configures the ethtool settings of a physical link. */
export const EthernetConfig = defineDocument({
  kind: 'EthernetConfig',
  description: 'Ethtool settings of a physical link.',
  nameKey: 'name',
  schema: section({
    name: text,
    features: mapOf(flag),
    rings: section({
      rx: unsigned(32),
      tx: unsigned(32),
      'rx-mini': unsigned(32),
      'rx-jumbo': unsigned(32),
      'rx-buf-len': unsigned(32),
      'cqe-size': unsigned(32),
      'tx-push': flag,
      'rx-push': flag,
      'tx-push-buf-len': unsigned(32),
      'tcp-data-split': flag,
    }),
    channels: section({ rx: unsigned(32), tx: unsigned(32), other: unsigned(32), combined: unsigned(32) }),
    wakeOnLan: listOf(oneOf('phy', 'unicast', 'multicast', 'broadcast', 'magic', 'magicsecure', 'filter')),
  }),
  rules: ({ name }, report) => requireName(name, report),
})
