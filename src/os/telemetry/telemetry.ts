import type { Area } from '../area.ts'
import { metrics } from './api/metrics.ts'
import { observeCalls } from './controllers/api-call.ts'
import { observeStats } from './controllers/stats.ts'
import { exportTraces } from './controllers/traces.ts'
import { resources } from './resource-types.ts'

/** Audit log, metrics and traces of the machine and of its API's calls. */
export const telemetry: Area = {
  name: 'telemetry',
  resources,
  parts: (machine) => ({
    controllers: [observeCalls(machine.calls.audit), observeStats(machine.kernel), exportTraces(machine)],
    methods: [metrics(machine)],
  }),
}
