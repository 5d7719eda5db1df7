import { type Controller, defineController, weak } from '../../../cosi/controller.ts'
import type { SpecOf } from '../../../cosi/resource.ts'
import { Diagnostic } from '../../runtime/resources/diagnostic.ts'

/** Milliseconds after which a diagnostic that is still active is logged again. */
const repeatInterval = 5 * 60_000

/** Logs diagnostics when they become active, every five minutes while they stay so, and when they are resolved. */
export const logDiagnostics = (): Controller => {
  /** Active ones, and when each was last logged. */
  const active = new Map<string, { logged: number; spec: SpecOf<typeof Diagnostic> }>()
  return defineController({
    name: 'runtime.DiagnosticsLoggerController',
    inputs: { diagnostics: weak(Diagnostic) },
    outputs: {},
    reconcile({ diagnostics, log, clock, wakeIn }) {
      const now = clock.elapsed()
      const present = diagnostics.list()
      for (const { metadata, spec } of present) {
        const { id } = metadata
        const before = active.get(id)
        if (before && now - before.logged < repeatInterval) continue
        const { message, details } = spec
        log.warn(before ? 'diagnostic still active' : 'new diagnostic', { id, message, ...(details.length > 0 && { details }) })
        active.set(id, { logged: now, spec })
      }
      for (const [id, { spec }] of active) {
        if (present.some(({ metadata }) => metadata.id === id)) continue
        log.info('diagnostic resolved', { id, message: spec.message })
        active.delete(id)
      }
      const due = [...active.values()].map(({ logged }) => logged + repeatInterval - now)
      if (due.length > 0) wakeIn(Math.min(...due))
    },
  })
}
