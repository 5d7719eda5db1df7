import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** Who can recover encrypted volumes; it is there once a configuration is, with no recipients if that has none. */
export const DiskRecovery = defineResource({
  type: 'DiskRecoveries.block.ichor.dev',
  namespace: 'runtime',
  displayType: 'DiskRecovery',
  initials: false,
  columns: { Recipients: '{.recipients}' },
  spec: v.object({
    /** Public keys of age. */
    recipients: v.array(v.string()),
  }),
})
