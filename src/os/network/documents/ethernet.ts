import { described, flag, listOf, mapOf, oneOf, section, text, unsigned } from '../../../document/fields.ts'
import { defineDocument } from '../../../document/kind.ts'
import { requireName } from './link-fields.ts'

/** Configures the ethtool settings of a physical link. */
export const EthernetConfig = defineDocument({
  kind: 'EthernetConfig',
  description: 'Ethtool settings of a physical link.',
  nameKey: 'name',
  schema: section({
    name: described(text, 'The unique name of this document among those of its kind.'),
    features: described(mapOf(flag), 'What the network interface does itself, by name.'),
    rings: described(
      section({
        rx: described(unsigned(32), 'For receiving.'),
        tx: described(unsigned(32), 'For sending.'),
        'rx-mini': described(unsigned(32), 'For receiving small packets.'),
        'rx-jumbo': described(unsigned(32), 'For receiving large packets.'),
        'rx-buf-len': described(unsigned(32), 'Bytes of a buffer for receiving.'),
        'cqe-size': described(unsigned(32), 'Bytes of an entry in the queue of completions.'),
        'tx-push': described(flag, 'Whether descriptors are pushed to the network interface when sending.'),
        'rx-push': described(flag, 'Whether descriptors are pushed to the network interface when receiving.'),
        'tx-push-buf-len': described(unsigned(32), 'Bytes of a packet that are pushed to the network interface.'),
        'tcp-data-split': described(flag, 'Whether headers and data go to different buffers.'),
      }),
      'Buffers of the network interface.',
    ),
    channels: described(
      section({
        rx: described(unsigned(32), 'For receiving.'),
        tx: described(unsigned(32), 'For sending.'),
        other: described(unsigned(32), 'For anything else.'),
        combined: described(unsigned(32), 'For receiving and sending.'),
      }),
      'Queues of the network interface.',
    ),
    wakeOnLan: described(
      listOf(oneOf('phy', 'unicast', 'multicast', 'broadcast', 'magic', 'magicsecure', 'filter')),
      'What wakes the machine.',
    ),
  }),
  rules: ({ name }, report) => requireName(name, report),
})
