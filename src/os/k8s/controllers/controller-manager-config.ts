import { defineController, exclusive, weak } from '../../../cosi/controller.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import { defaultImages } from '../images.ts'
import { extraArgsOf, isControlPlane, kubernetesConfigOf, podSubnets, serviceSubnets } from '../machine-config.ts'
import { ControllerManagerConfig } from '../resources/controller-manager-config.ts'
import { podResources, volumesOf } from './component-config.ts'

/** What the machine configuration says about kube-controller-manager. */
export const configControllerManager = defineController({
  name: 'k8s.ControlPlaneControllerManagerController',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }) },
  outputs: { controllerManager: exclusive(ControllerManagerConfig) },
  reconcile({ config, controllerManager }) {
    const machineConfig = kubernetesConfigOf(config.get('v1alpha1'))
    if (!machineConfig || !isControlPlane(machineConfig)) return
    const { cluster } = machineConfig
    const component = cluster?.controllerManager
    controllerManager.put('kube-controller-manager', {
      enabled: true,
      image: component?.image || defaultImages.controllerManager,
      cloudProvider: cluster?.externalCloudProvider?.enabled ? 'external' : '',
      podCIDRs: podSubnets(cluster),
      serviceCIDRs: serviceSubnets(cluster),
      extraArgs: extraArgsOf(component?.extraArgs),
      extraVolumes: volumesOf(component),
      environmentVariables: component?.env ?? {},
      resources: podResources(component),
    })
  },
})
