import { type Controller, defineController, weak } from '../../../cosi/controller.ts'
import type { Machine } from '../../area.ts'
import { SystemDisk } from '../../block/resources/system-disk.ts'
import { VolumeStatus } from '../../block/resources/volume-status.ts'
import { MetaLoad } from '../../runtime/resources/meta.ts'
import { reboot } from '../stop.ts'
import { watchTrial } from '../upgrade/trial.ts'

/** Once the boot slot is known, marks a release on trial as good or rolls back. */
export const dropUpgradeFallback = (machine: Machine): Controller => {
  let over = false
  return defineController({
    name: 'runtime.DropUpgradeFallbackController',
    inputs: { meta: weak(MetaLoad), disk: weak(SystemDisk), volumes: weak(VolumeStatus, { id: 'META' }) },
    outputs: {},
    reconcile({ meta, disk, volumes, background }) {
      if (over || !meta.list().some(({ spec }) => spec.done)) return
      // Booted from a medium: a release installed now is not the running one.
      if (volumes.get('META')?.spec.phase === 'missing') over = true
      if (over || !disk.get('system-disk')) return
      background('trial', async (signal) => {
        const outcome = await watchTrial(machine, signal)
        over = true
        if (outcome === 'back') await machine.sequencer.run('reboot', reboot(machine))
      })
    },
  })
}
