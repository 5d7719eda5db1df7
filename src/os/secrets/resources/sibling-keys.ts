import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** Keys with which a control plane seals keys of disks for workers. */
export const SiblingKeys = defineResource({
  type: 'SiblingKeys.secrets.ichor.dev',
  namespace: 'secrets',
  displayType: 'SiblingKeys',
  initials: false,
  sensitive: true,
  spec: v.object({
    /** Base64 of 32 bytes; the first one seals. */
    keys: v.array(v.string()),
  }),
})
