import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** A step of this start of the machine: when it began after power-on, and how long it took. */
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
    /** Seconds since power-on, and that it took, with three digits. */
    began: v.string(),
    took: v.optional(v.string()),
    error: v.optional(v.string()),
  }),
})
