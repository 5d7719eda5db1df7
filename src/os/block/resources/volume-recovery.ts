import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { integer } from '../../values.ts'

/**
 * The recovery keys of an encrypted volume, by the id of the volume: where they are in the header, and the keys encrypted to their
 * recipients. Only administrators read those; while the volume is locked everyone does, since then no administrator may be known.
 */
export const VolumeRecovery = defineResource({
  type: 'VolumeRecoveries.block.ichor.dev',
  namespace: 'runtime',
  displayType: 'VolumeRecovery',
  initials: false,
  columns: { Slots: '{.keys[*].slot}', Locked: '{.locked}' },
  spec: v.object({
    /** Whether no other key opens the volume, which waits for one of these. */
    locked: v.boolean(),
    keys: v.array(
      v.object({
        slot: integer,
        /** An age file in ASCII that holds the key; empty where it has no recipients. */
        escrow: v.string(),
        /** Whom a DiskRecoveryConfig names; keys that were printed have none. */
        recipients: v.optional(v.array(v.string())),
      }),
    ),
  }),
  redacted: ({ locked, keys }) => ({ locked, keys: locked ? keys : keys.map((key) => ({ ...key, escrow: '' })) }),
})

/** Counts the calls that changed recovery keys, or gave one: the controller of volumes then looks at all of them. */
export const VolumeRecoveryRequest = defineResource({
  type: 'VolumeRecoveryRequests.block.ichor.dev',
  namespace: 'runtime',
  displayType: 'VolumeRecoveryRequest',
  initials: false,
  spec: v.object({ request: integer }),
})
