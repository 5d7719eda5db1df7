import { type Controller, defineController, weak } from '../../../cosi/controller.ts'
import type { Machine } from '../../area.ts'
import { activateGroup, scanPhysicalVolume } from '../groups/lvm.ts'
import { Members } from '../groups/members.ts'
import { DiscoveredVolume } from '../resources/discovered-volume.ts'
import { VolumeStatus } from '../resources/volume-status.ts'

/** Activates the volume groups of LVM that disks hold, each once all its physical volumes are there. */
export const activateVolumeGroups = (machine: Pick<Machine, 'spawn'>): Controller => {
  const members = new Members('lvm2-pv')
  return defineController({
    name: 'block.LVMActivationController',
    // Before the system is installed, each disk may be given up for it.
    inputs: { volume: weak(DiscoveredVolume), status: weak(VolumeStatus, { id: 'META' }) },
    outputs: {},
    async reconcile({ volume, status, log }) {
      const waiting = members.waiting(volume.list())
      if (status.get('META')?.spec.phase !== 'ready') return
      const groups = new Map<string, boolean>()
      for (const path of waiting) {
        const group = await scanPhysicalVolume(machine, path)
        if (group) groups.set(group.name, group.complete)
      }
      for (const [group, complete] of groups) {
        if (complete) await activateGroup(machine, group)
        if (complete) log.info('volume group activated', { group })
        else log.warn('volume group incomplete, waiting for its other disks', { group })
      }
      for (const path of waiting) members.done(path)
    },
  })
}
