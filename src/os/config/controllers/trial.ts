import { type Controller, defineController, weak } from '../../../cosi/controller.ts'
import type { ConfigApply } from '../apply/config-apply.ts'
import { AcquireConfigStatus, acquireId } from '../resources/acquire-config.ts'

/** Reverts a configuration whose trial has expired, also when the trial started before this boot. */
export const endTrial = (service: Pick<ConfigApply, 'state' | 'tick'>): Controller =>
  defineController({
    name: 'config.TrialController',
    inputs: { acquired: weak(AcquireConfigStatus, { id: acquireId }) },
    outputs: {},
    start: ({ wake }) => service.state.onTrial(wake),
    async reconcile({ acquired, wakeIn }) {
      if (!acquired.get(acquireId)) return
      await service.tick()
      const next = service.state.nextTick()
      if (next !== undefined) wakeIn(next)
    },
  })
