import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** The outcome of a check of the network. */
export const ProbeStatus = defineResource({
  type: 'ProbeStatuses.net.talos.dev',
  namespace: 'network',
  displayType: 'ProbeStatus',
  aliases: ['probe', 'probes'],
  columns: { Success: '{.success}' },
  spec: v.object({ success: v.boolean(), lastError: v.string() }),
})
