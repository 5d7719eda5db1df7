import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { integer } from '../../values.ts'

/** The recovery key of an encrypted volume, by the id of the volume: where it is in the header, and the key encrypted to its recipients. */
export const VolumeRecovery = defineResource({
  type: 'VolumeRecoveries.block.ichor.dev',
  namespace: 'runtime',
  displayType: 'VolumeRecovery',
  initials: false,
  columns: { Slot: '{.slot}', Locked: '{.locked}' },
  spec: v.object({
    slot: integer,
    /** Whether no other key opens the volume, which waits for this one. */
    locked: v.boolean(),
    /** An age file in ASCII that holds the key; empty where it has no recipients. */
    escrow: v.string(),
  }),
})

/** Counts the calls that changed recovery keys, or gave one: the controller of volumes then looks at all of them. */
export const VolumeRecoveryRequest = defineResource({
  type: 'VolumeRecoveryRequests.block.ichor.dev',
  namespace: 'runtime',
  displayType: 'VolumeRecoveryRequest',
  initials: false,
  spec: v.object({ request: integer }),
})
