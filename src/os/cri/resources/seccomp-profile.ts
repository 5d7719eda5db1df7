import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** A system call filter for pods. */
export const SeccompProfile = defineResource({
  type: 'SeccompProfiles.cri.talos.dev',
  namespace: 'cri',
  displayType: 'SeccompProfile',
  spec: v.object({ name: v.string(), value: v.optional(v.record(v.string(), v.unknown()), {}) }),
})
