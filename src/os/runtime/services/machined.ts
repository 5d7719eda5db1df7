import type { ServiceDefinition } from '../../../supervise/definition.ts'
import { unixProbe } from '../../../supervise/probe.ts'
import { task } from '../../../supervise/runner/task.ts'

/** Where init answers the machine API. */
export const machineSocket = '/system/run/machined/machine.sock'

/** Init itself: its API is opened before any service starts, and lives as long as init. */
export const machinedService = (): ServiceDefinition => ({
  id: 'machined',
  dependsOn: [],
  runner: task('machined', ({ signal }) => new Promise((resolve) => signal.addEventListener('abort', () => resolve()))),
  health: { check: unixProbe(machineSocket) },
  restart: 'never',
  cgroup: '/init',
})
