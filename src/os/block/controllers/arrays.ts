import type { Deadline } from '../../../cosi/clock.ts'
import { type Controller, defineController, weak } from '../../../cosi/controller.ts'
import type { Machine } from '../../area.ts'
import { addMember, kernelArrays, startIncomplete } from '../groups/arrays.ts'
import { Members } from '../groups/members.ts'
import { DiscoveredVolume } from '../resources/discovered-volume.ts'
import { VolumeStatus } from '../resources/volume-status.ts'

/** Milliseconds that an array waits for its other members before it starts without them. */
const grace = 30_000
/** Milliseconds between looks at the arrays: the kernel does not report a member that fails to this controller. */
const interval = 60_000

/** Assembles the arrays of which disks and partitions are members. */
export const assembleArrays = (machine: Pick<Machine, 'spawn' | 'kernel'>): Controller => {
  const members = new Members('linux_raid_member')
  /** Missing members by the name of the array, as logged last. */
  const logged = new Map<string, number>()
  let wait: Deadline | undefined
  return defineController({
    name: 'block.MDAssemblyController',
    inputs: { volume: weak(DiscoveredVolume), status: weak(VolumeStatus, { id: 'META' }) },
    outputs: {},
    async reconcile({ volume, status, log, clock, wakeIn }) {
      const waiting = members.waiting(volume.list())
      if (status.get('META')?.spec.phase !== 'ready') return
      for (const path of waiting) {
        await addMember(machine, path)
        members.done(path)
        wait = clock.deadline(grace)
      }
      if (wait?.over) {
        wait = undefined
        if (kernelArrays(machine.kernel.files).some(({ started }) => !started)) await startIncomplete(machine)
      }
      const arrays = kernelArrays(machine.kernel.files).filter(({ started }) => started)
      for (const { name, missing } of arrays) {
        if ((logged.get(name) ?? 0) === missing) continue
        if (missing > 0) log.warn('array runs without some of its members', { array: name, missing })
        else log.info('array complete again', { array: name })
        logged.set(name, missing)
      }
      if (wait) wakeIn(wait.left)
      else if (arrays.length > 0) wakeIn(interval)
    },
  })
}
