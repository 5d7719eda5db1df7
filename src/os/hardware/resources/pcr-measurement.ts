import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** A platform configuration register of the TPM: its value, and what was measured into it at this start. */
export const PCRMeasurement = defineResource({
  type: 'PCRMeasurements.hardware.ichor.dev',
  namespace: 'hardware',
  displayType: 'PCRMeasurement',
  columns: { Bank: '{.bank}', Value: '{.value}', Explained: '{.explained}' },
  spec: v.object({
    bank: v.picklist(['sha1', 'sha256', 'sha384', 'sha512']),
    value: v.string(),
    /** Whether the events give the value; otherwise something was measured that is in no log. */
    explained: v.boolean(),
    events: v.array(
      v.object({
        /** Number in the log of the firmware; init and stage 0 measure what is not in it. */
        index: v.optional(v.number()),
        /** As the specification names it, or `phase` for a phase of the start. */
        type: v.string(),
        digest: v.string(),
        subject: v.string(),
        detail: v.optional(v.string()),
      }),
    ),
  }),
})
