import { type Controller, defineController, weak } from '../../../cosi/controller.ts'
import type { Machine } from '../../area.ts'
import { SystemDisk } from '../../block/resources/system-disk.ts'
import { VolumeStatus } from '../../block/resources/volume-status.ts'
import { MetaLoad } from '../../runtime/resources/meta.ts'
import { reboot } from '../stop.ts'
import { watchTrial } from '../upgrade/trial.ts'

/** Once it is known what the machine was started from: a release on trial is marked good, or the machine goes back. */
export const dropUpgradeFallback = (machine: Machine): Controller => {
  let over = false
  return defineController({
    name: 'runtime.DropUpgradeFallbackController',
    inputs: { meta: weak(MetaLoad), disk: weak(SystemDisk), volumes: weak(VolumeStatus, { id: 'META' }) },
    outputs: {},
    reconcile({ meta, disk, volumes, background }) {
      if (over || !meta.list().some(({ spec }) => spec.done)) return
      // Started from a medium: whatever is installed from here on is not what runs.
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
