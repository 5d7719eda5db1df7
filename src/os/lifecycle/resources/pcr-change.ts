import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** Whether a PCR is what it was at the last good start before this one, and which events differ. */
export const PCRChange = defineResource({
  type: 'PCRChanges.runtime.ichor.dev',
  namespace: 'runtime',
  displayType: 'PCRChange',
  columns: { Changed: '{.changed}', Since: '{.since}', Release: '{.release}', Before: '{.before}' },
  spec: v.object({
    changed: v.boolean(),
    /** When that start was found good, and the release that was started. */
    since: v.string(),
    release: v.string(),
    /** The value at that start; absent for a PCR that was not in use. */
    before: v.optional(v.string()),
    changes: v.array(
      v.object({
        /** `order`: the same events in another order. `unlogged`: something was measured that is in no log. */
        kind: v.picklist(['added', 'removed', 'changed', 'order', 'unlogged']),
        type: v.optional(v.string()),
        subject: v.optional(v.string()),
        /** What is known of the content, otherwise the beginning of the digest. */
        before: v.optional(v.string()),
        after: v.optional(v.string()),
      }),
    ),
  }),
})
