import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { integer } from '../../values.ts'

/** A swap area in use. */
export const SwapStatus = defineResource({
  type: 'SwapStatuses.block.talos.dev',
  namespace: 'runtime',
  displayType: 'SwapStatus',
  aliases: ['swap', 'swaps'],
  columns: { Device: '{.device}', Size: '{.sizeHuman}', Used: '{.usedHuman}', Priority: '{.priority}' },
  spec: v.object({
    device: v.string(),
    type: v.string(),
    size: integer,
    sizeHuman: v.string(),
    used: integer,
    usedHuman: v.string(),
    priority: integer,
  }),
})
