import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import { parseSwaps } from '../../../wire/proc/swaps.ts'
import type { Kernel } from '../../kernel.ts'
import { MountStatus } from '../resources/mount-status.ts'
import { SwapStatus } from '../resources/swap-status.ts'
import { prettyBinarySize } from '../sizes.ts'

/** Polling interval in milliseconds: the kernel does not report changes of usage. */
const interval = 30_000

/** Publishes the swap areas and their usage. */
export const observeSwap = ({ files }: { files: Pick<Kernel['files'], 'readTextIfThere'> }): Controller =>
  defineController({
    name: 'block.SwapStatusController',
    inputs: { mounted: weak(MountStatus) },
    outputs: { status: exclusive(SwapStatus) },
    reconcile({ status, wakeIn }) {
      const areas = parseSwaps(files.readTextIfThere('/proc/swaps') ?? '')
      for (const area of areas)
        status.put(area.device, { ...area, sizeHuman: prettyBinarySize(area.size), usedHuman: prettyBinarySize(area.used) })
      if (areas.length > 0) wakeIn(interval)
    },
  })
