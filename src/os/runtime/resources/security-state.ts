import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** How the machine was started and what it enforces. */
export const SecurityState = defineResource({
  type: 'SecurityStates.talos.dev',
  namespace: 'runtime',
  displayType: 'SecurityState',
  columns: {
    SecureBoot: '{.secureBoot}',
    UKISigningKeyFingerprint: '{.ukiSigningKeyFingerprint}',
    PCRSigningKeyFingerprint: '{.pcrSigningKeyFingerprint}',
    SELinuxState: '{.selinuxState}',
    ModuleSignatureEnforced: '{.moduleSignatureEnforced}',
  },
  spec: v.object({
    secureBoot: v.boolean(),
    ukiSigningKeyFingerprint: v.optional(v.string()),
    pcrSigningKeyFingerprint: v.optional(v.string()),
    selinuxState: v.optional(v.string()),
    fipsState: v.optional(v.string()),
    bootedWithUKI: v.optional(v.boolean()),
    moduleSignatureEnforced: v.optional(v.boolean()),
  }),
})
