import * as v from 'valibot'
import { bytes, integer } from '../../values.ts'

/** Mount point and options of a volume, in requests and statuses. */
export const mountSpec = v.object({
  targetPath: v.string(),
  selinuxLabel: v.string(),
  projectQuotaSupport: v.boolean(),
  parentId: v.optional(v.string()),
  fileMode: v.optional(integer),
  uid: v.optional(integer),
  gid: v.optional(integer),
  recursiveRelabel: v.optional(v.boolean()),
  bindTarget: v.optional(v.string()),
  parameters: v.optional(
    v.array(v.object({ type: v.string(), name: v.string(), string: v.optional(v.string()), binary: v.optional(bytes) })),
  ),
})
