import { type Controller, defineController, weak } from '../../../cosi/controller.ts'
import type { ConfigDesk } from '../desk.ts'
import { AcquireConfigStatus, acquireId } from '../resources/acquire-config-status.ts'

/** Takes back what was on trial for long enough, also when the trial began before this start. */
export const endTrial = (desk: Pick<ConfigDesk, 'resume' | 'left' | 'lapse' | 'onTrial'>): Controller => {
  let resumed = false
  return defineController({
    name: 'config.TrialController',
    inputs: { acquired: weak(AcquireConfigStatus, { id: acquireId }) },
    outputs: {},
    start: ({ wake }) => desk.onTrial(wake),
    async reconcile({ acquired, wakeIn }) {
      if (!acquired.get(acquireId)) return
      if (!resumed) desk.resume()
      resumed = true
      if (desk.left() === 0) await desk.lapse()
      const left = desk.left()
      if (left !== undefined) wakeIn(left)
    },
  })
}
