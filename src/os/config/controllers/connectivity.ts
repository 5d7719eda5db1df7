import { type Controller, defineController, weak } from '../../../cosi/controller.ts'
import type { ConfigApply } from '../apply/config-apply.ts'
import { settleTime } from '../apply/reach.ts'
import { answers } from '../probe.ts'
import { MachineConfig } from '../resources/machine-config.ts'

/** Interval of probes, and their timeout. In milliseconds. */
const interval = 2000

/**
 * Checks whether the machine still reaches others after a change that could have cut it off: one answer from any target that
 * answered before is enough. The apply service notices callers that come back over a new connection.
 */
export const observeConnectivity = (service: Pick<ConfigApply, 'state' | 'reached' | 'targets'>, probe = answers): Controller =>
  defineController({
    name: 'config.ConnectivityController',
    inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }) },
    outputs: {},
    start: ({ wake }) => service.state.onTrial(wake),
    reconcile({ background, clock }) {
      const { trial } = service.state
      if (trial?.kind !== 'connectivity' || trial.waits) return
      background(`trial ${trial.entry}`, async (signal) => {
        await clock.sleep(settleTime, signal)
        while (!signal.aborted && service.state.trial === trial) {
          const tries = service.targets(trial).map(async (target) => {
            const answered = await probe(target, interval, signal)
            if (answered && !signal.aborted) await service.reached(0, `${target.host}:${target.port} answers`)
          })
          await Promise.all(tries)
          await clock.sleep(interval, signal)
        }
      })
    },
  })
