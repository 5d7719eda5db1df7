/** Rules of public keys of age in documents. */
import { parseRecipient } from '../wire/age/keys.ts'
import type { Reporter } from './kind.ts'

/** Reports more recipients than `most`, and each that is none. */
export function recipientRules(recipients: readonly string[], most: number, report: Reporter): void {
  if (recipients.length > most) report.error(['recipients'], `at most ${most} recipients`)
  for (const [index, recipient] of recipients.entries())
    if (!isRecipient(recipient))
      report.error(['recipients', index], 'not a recipient of age: "age1…" is expected, as "age-keygen" prints it')
}

function isRecipient(text: string): boolean {
  try {
    parseRecipient(text)
    return true
  } catch {
    return false
  }
}
