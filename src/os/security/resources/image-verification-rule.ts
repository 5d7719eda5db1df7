import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** Which signatures an image must have. */
export const ImageVerificationRule = defineResource({
  type: 'ImageVerificationRules.security.talos.dev',
  namespace: 'security',
  displayType: 'ImageVerificationRule',
  columns: { Pattern: '{.imagePattern}', Skip: '{.skip}', Deny: '{.deny}' },
  spec: v.object({
    imagePattern: v.optional(v.string()),
    skip: v.boolean(),
    deny: v.boolean(),
    keylessVerifier: v.optional(v.object({ issuer: v.string(), subject: v.optional(v.string()), subjectRegex: v.optional(v.string()) })),
    publicKeyVerifier: v.optional(v.object({ certificate: v.string() })),
  }),
})
