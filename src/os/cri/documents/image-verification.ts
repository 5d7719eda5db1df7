import { described, flag, listOf, section, text } from '../../../document/fields.ts'
import { defineDocument } from '../../../document/kind.ts'
import { PatternError } from '../../../wire/re2/parse.ts'
import { Re2 } from '../../../wire/re2/re2.ts'

/** Required signatures of images. */
export const ImageVerificationConfig = defineDocument({
  kind: 'ImageVerificationConfig',
  description: 'Required signatures of images.',
  schema: section({
    rules: described(
      listOf(
        section({
          image: described(text, 'Which images; * stands for anything.'),
          skip: described(flag, 'Takes them unseen.'),
          deny: described(flag, 'Never takes them.'),
          keyless: described(
            section({
              issuer: described(text, 'Who vouches for the identity.'),
              subject: described(text, 'The identity.'),
              subjectRegex: described(text, 'A pattern the identity fits.'),
            }),
            'Takes those signed by an identity.',
          ),
          publicKey: described(
            section({ certificate: described(text, 'The key, or a certificate with it, in PEM.') }),
            'Takes those signed by a key.',
          ),
        }),
      ),
      'Rules, the first that fits an image counts.',
    ),
  }),
  rules({ rules = [] }, report) {
    for (const [index, rule] of rules.entries()) {
      const at = (...path: string[]) => ['rules', index, ...path]
      if (!rule.image) report.error(at('image'), 'a pattern for images is required')
      else if (/@|:[^/]*$/.test(rule.image)) report.warning(at('image'), 'rules match names without tag or digest')
      if (rule.skip && rule.deny) report.error(at(), 'skip and deny exclude each other')
      const verifiers = [rule.keyless, rule.publicKey].filter(Boolean).length
      if ((rule.skip || rule.deny) && verifiers > 0) report.error(at(), 'a rule that skips or denies verifies nothing')
      if (!rule.skip && !rule.deny && verifiers !== 1) report.error(at(), 'exactly one of keyless and publicKey is required')
      if (rule.keyless && !rule.keyless.issuer) report.error(at('keyless', 'issuer'), 'an issuer is required')
      if (rule.keyless && !rule.keyless.subject && !rule.keyless.subjectRegex)
        report.error(at('keyless'), 'subject or subjectRegex is required')
      const mistake = rule.keyless?.subjectRegex && mistakeIn(rule.keyless.subjectRegex)
      if (mistake) report.error(at('keyless', 'subjectRegex'), mistake)
      if (rule.publicKey && !rule.publicKey.certificate) report.error(at('publicKey', 'certificate'), 'a certificate is required')
    }
  },
})

/** What is wrong with a regular expression. */
function mistakeIn(pattern: string): string | undefined {
  try {
    new Re2(pattern)
    return undefined
  } catch (error) {
    if (error instanceof PatternError) return error.message
    throw error
  }
}
