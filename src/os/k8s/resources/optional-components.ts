import { ControllerManagerConfig } from './controller-manager-config.ts'
import { SchedulerConfig } from './scheduler-config.ts'

/** Components of the control plane that a configuration may disable: their reports, whose field `enabled` is false then, and its key. */
export const optionalComponents = [
  { name: 'kube-controller-manager', config: ControllerManagerConfig, key: 'machine.controlPlane.controllerManager.disabled' },
  { name: 'kube-scheduler', config: SchedulerConfig, key: 'machine.controlPlane.scheduler.disabled' },
] as const
