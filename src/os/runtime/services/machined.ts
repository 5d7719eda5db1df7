import type { ServiceDefinition } from '../../../supervise/definition.ts'
import { unixProbe } from '../../../supervise/probe.ts'
import { task } from '../../../supervise/runner/task.ts'
import { machineSocket } from '../../machine-socket.ts'

/** Init itself: its API starts before any service, and lives as long as init. */
export const machinedService = (): ServiceDefinition => ({
  id: 'machined',
  dependsOn: [],
  runner: task('machined', ({ signal }) => new Promise((resolve) => signal.addEventListener('abort', () => resolve()))),
  health: { check: unixProbe(machineSocket) },
  restart: 'never',
  cgroup: '/init',
})
