import { defineController, exclusive, weak } from '../../../../cosi/controller.ts'
import { declared, podSubnets, serviceSubnets } from '../../../config/public.ts'
import { MachineConfig } from '../../../config/resources/machine-config.ts'
import { sharedAddresses } from '../../../network/public.ts'
import { kubernetesConfigOf } from '../../machine-config.ts'
import { NodeIPConfig } from '../../resources/node-ip.ts'

/** The subnets that the node's addresses are taken from: never those of pods and services, and never a virtual IP. */
export const configNodeIP = defineController({
  name: 'k8s.NodeIPConfigController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }) },
  outputs: { nodeIP: exclusive(NodeIPConfig) },
  reconcile({ config, nodeIP }) {
    const machineConfig = kubernetesConfigOf(config.get('v1alpha1'))
    if (!machineConfig?.cluster) return
    const { machine, cluster } = machineConfig
    const found = declared(config.get('v1alpha1'))
    const shared = sharedAddresses(found)
    nodeIP.put('kubelet', {
      validSubnets: machine?.kubelet?.nodeIP?.validSubnets ?? [],
      excludeSubnets: [...podSubnets(cluster), ...serviceSubnets(cluster), ...shared],
    })
  },
})
