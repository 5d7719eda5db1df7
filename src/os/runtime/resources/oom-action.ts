import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** A cgroup that was killed to save the machine from running out of memory. */
export const OOMAction = defineResource({
  type: 'OOMActions.talos.dev',
  namespace: 'runtime',
  displayType: 'OOMAction',
  aliases: ['oomaction', 'oomactions'],
  sensitive: true,
  columns: { Time: '{.time}', Score: '{.score}' },
  spec: v.object({ triggerContext: v.optional(v.string()), score: v.optional(v.number()), processes: v.optional(v.array(v.string())) }),
})
