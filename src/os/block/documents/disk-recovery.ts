import * as v from 'valibot'
import { listOf, section, text } from '../../../document/fields.ts'
import { defineDocument } from '../../../document/kind.ts'
import { recipientRules } from '../../../document/recipients.ts'

/** Most recipients of a recovery key: each takes a hundred bytes of the header, and as many again where it is listed. */
export const mostRecipients = 5

/** Who can recover encrypted volumes. */
export const DiskRecoveryConfig = defineDocument({
  kind: 'DiskRecoveryConfig',
  description:
    'A recovery key for the encrypted volumes of the machine, which the machine makes and encrypts to these recipients; `talosctl volumes recovery-key --identity` decrypts it.',
  schema: section({
    recipients: v.pipe(
      listOf(text),
      v.description('Public keys of age that the recovery key is encrypted to, up to 5. The identity of each of them opens the volumes.'),
      v.metadata({ example: ['age1lvyvwawkr0mcnnnncaghunadrqkmuf9e6507x9y920xxpp866cnql7dp2z'] }),
    ),
  }),
  rules({ recipients = [] }, report, mode) {
    if (mode === 'container') report.error([], 'a container has no encrypted volumes, its host encrypts its files: leave it out')
    if (recipients.length === 0) report.error(['recipients'], 'a recipient (age1…) is required')
    recipientRules(recipients, mostRecipients, report)
    if (new Set(recipients).size < recipients.length) report.error(['recipients'], 'a recipient is given twice')
  },
})
