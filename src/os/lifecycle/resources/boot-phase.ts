import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** A phase of the boot: when it began after power-on, and its duration. */
export const BootPhase = defineResource({
  type: 'BootPhases.runtime.ichor.dev',
  namespace: 'runtime',
  displayType: 'BootPhase',
  aliases: ['boot'],
  columns: {
    Sequence: '{.sequence}',
    Phase: '{.phase}',
    State: '{.state}',
    'Began (s)': '{.began}',
    'Took (s)': '{.took}',
    Error: '{.error}',
  },
  spec: v.object({
    sequence: v.string(),
    phase: v.string(),
    tasks: v.optional(v.array(v.string()), []),
    state: v.picklist(['running', 'done', 'failed']),
    /** Start after power-on and duration in seconds, with three decimals. */
    began: v.string(),
    took: v.optional(v.string()),
    error: v.optional(v.string()),
    /** The errno name of the system call that failed. */
    code: v.optional(v.string()),
  }),
})
