import type { Area } from '../area.ts'
import { nodeAccess } from '../k8s/public.ts'
import { explain } from './api/explain.ts'
import { publishDiagnostics } from './controllers/diagnostics.ts'
import { logDiagnostics } from './controllers/diagnostics-log.ts'

/** Why the machine or one of its resources is not ready; reads every other area. */
export const diagnosis: Area = {
  name: 'diagnosis',
  resources: [],
  parts: (machine) => ({
    controllers: [publishDiagnostics({ access: () => nodeAccess(machine.store, machine.kernel.files) }), logDiagnostics()],
    methods: [explain(machine)],
  }),
}
