import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** The stage of the machine, and what keeps it from being ready. */
export const MachineStatus = defineResource({
  type: 'MachineStatuses.runtime.talos.dev',
  namespace: 'runtime',
  displayType: 'MachineStatus',
  columns: { Stage: '{.stage}', Ready: '{.status.ready}' },
  spec: v.object({
    stage: v.picklist([
      'unknown',
      'booting',
      'installing',
      'maintenance',
      'running',
      'rebooting',
      'shutting down',
      'resetting',
      'upgrading',
    ]),
    status: v.object({ ready: v.boolean(), unmetConditions: v.optional(v.array(v.object({ name: v.string(), reason: v.string() })), []) }),
  }),
})
