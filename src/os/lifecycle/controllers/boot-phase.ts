import { type Controller, defineController, exclusive } from '../../../cosi/controller.ts'
import type { PhaseLog } from '../phase-log.ts'
import { BootPhase } from '../resources/boot-phase.ts'

const digits = 3

/** Publishes the phases of this boot in order. */
export const observeBootPhases = (phases: Pick<PhaseLog, 'list' | 'subscribe'>): Controller =>
  defineController({
    name: 'lifecycle.BootPhaseController',
    inputs: {},
    outputs: { steps: exclusive(BootPhase) },
    start({ wake, signal }) {
      signal.addEventListener('abort', phases.subscribe(wake))
    },
    reconcile({ steps }) {
      for (const [index, { sequence, phase, tasks, began, took, error, code }] of phases.list().entries())
        steps.put(`${String(index).padStart(digits, '0')}-${sequence}-${phase}`, {
          sequence,
          phase,
          tasks: [...tasks],
          state: took === undefined ? 'running' : error === undefined ? 'done' : 'failed',
          began: seconds(began),
          ...(took !== undefined && { took: seconds(took) }),
          ...(error !== undefined && { error }),
          ...(code && { code }),
        })
    },
  })

const seconds = (milliseconds: number) => (milliseconds / 1000).toFixed(3)
