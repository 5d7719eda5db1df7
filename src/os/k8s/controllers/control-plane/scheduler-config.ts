import { defineController, exclusive, weak } from '../../../../cosi/controller.ts'
import { MachineConfig } from '../../../config/resources/machine-config.ts'
import { annotated, inEffect } from '../../component/settings.ts'
import { defaultImages } from '../../images.ts'
import { extraArgsOf, isControlPlane, kubernetesConfigOf } from '../../machine-config.ts'
import { ComponentFallback } from '../../resources/component.ts'
import { SchedulerConfig } from '../../resources/scheduler-config.ts'
import { podResources, volumesOf } from './component-config.ts'

/** kube-scheduler's settings from the machine configuration. */
export const configScheduler = defineController({
  name: 'k8s.ControlPlaneSchedulerController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }), fallbacks: weak(ComponentFallback, { id: 'kube-scheduler' }) },
  outputs: { scheduler: exclusive(SchedulerConfig) },
  reconcile({ config, fallbacks, scheduler }) {
    const machineConfig = inEffect('kube-scheduler', kubernetesConfigOf(config.get('v1alpha1')), fallbacks.get('kube-scheduler'))
    if (!machineConfig || !isControlPlane(machineConfig)) return
    const component = machineConfig.cluster?.scheduler
    scheduler.put(
      'kube-scheduler',
      {
        enabled: machineConfig.machine?.controlPlane?.scheduler?.disabled !== true,
        image: component?.image || defaultImages.scheduler,
        extraArgs: extraArgsOf(component?.extraArgs),
        extraVolumes: volumesOf(component),
        environmentVariables: component?.env ?? {},
        resources: podResources(component),
        config: component?.config ?? {},
      },
      { annotations: annotated('kube-scheduler', machineConfig) },
    )
  },
})
