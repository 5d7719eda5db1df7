import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { duration, integer, layer } from '../../values.ts'

/** A desired network probe. */
export const ProbeSpec = defineResource({
  type: 'ProbeSpecs.net.talos.dev',
  namespace: 'network',
  displayType: 'ProbeSpec',
  spec: v.object({
    interval: duration,
    failureThreshold: integer,
    tcp: v.optional(v.object({ endpoint: v.string(), timeout: duration })),
    layer: layer,
  }),
})

/** The outcome of a network probe. */
export const ProbeStatus = defineResource({
  type: 'ProbeStatuses.net.talos.dev',
  namespace: 'network',
  displayType: 'ProbeStatus',
  aliases: ['probe', 'probes'],
  columns: { Success: '{.success}' },
  spec: v.object({ success: v.boolean(), lastError: v.string() }),
})
