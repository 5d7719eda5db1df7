import type { Area } from '../area.ts'
import { metrics } from './api/metrics.ts'
import { observeCalls } from './controllers/api-call.ts'
import { exportTraces } from './controllers/traces.ts'
import { resources } from './resource-types.ts'

/** What is measured and recorded of the machine and of the calls of its API: audit log, metrics, traces. */
export const telemetry: Area = {
  name: 'telemetry',
  resources,
  controllers: (machine) => [observeCalls(machine.calls.audit), exportTraces(machine)],
  methods: (machine) => [metrics(machine)],
}
