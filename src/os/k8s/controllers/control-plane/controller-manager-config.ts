import { defineController, exclusive, weak } from '../../../../cosi/controller.ts'
import { podSubnets, serviceSubnets } from '../../../config/public.ts'
import { MachineConfig } from '../../../config/resources/machine-config.ts'
import { annotated, inEffect } from '../../component/settings.ts'
import { defaultImages } from '../../images.ts'
import { extraArgsOf, isControlPlane, kubernetesConfigOf } from '../../machine-config.ts'
import { ComponentFallback } from '../../resources/component.ts'
import { ControllerManagerConfig } from '../../resources/controller-manager-config.ts'
import { podResources, volumesOf } from './component-config.ts'

/** kube-controller-manager's settings from the machine configuration. */
export const configControllerManager = defineController({
  name: 'k8s.ControlPlaneControllerManagerController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }), fallbacks: weak(ComponentFallback, { id: 'kube-controller-manager' }) },
  outputs: { controllerManager: exclusive(ControllerManagerConfig) },
  reconcile({ config, fallbacks, controllerManager }) {
    const machineConfig = inEffect(
      'kube-controller-manager',
      kubernetesConfigOf(config.get('v1alpha1')),
      fallbacks.get('kube-controller-manager'),
    )
    if (!machineConfig || !isControlPlane(machineConfig)) return
    const { cluster } = machineConfig
    const component = cluster?.controllerManager
    controllerManager.put(
      'kube-controller-manager',
      {
        enabled: machineConfig.machine?.controlPlane?.controllerManager?.disabled !== true,
        image: component?.image || defaultImages.controllerManager,
        cloudProvider: cluster?.externalCloudProvider?.enabled ? 'external' : '',
        podCIDRs: podSubnets(cluster),
        serviceCIDRs: serviceSubnets(cluster),
        extraArgs: extraArgsOf(component?.extraArgs),
        extraVolumes: volumesOf(component),
        environmentVariables: component?.env ?? {},
        resources: podResources(component),
      },
      { annotations: annotated('kube-controller-manager', machineConfig) },
    )
  },
})
