import { defineController, exclusive, weak } from '../../../../cosi/controller.ts'
import { MachineConfig } from '../../../config/resources/machine-config.ts'
import { kubernetesConfigOf } from '../../machine-config.ts'
import { KubernetesAccessConfig } from '../../resources/kubernetes-access-config.ts'

/** Which pods may use the machine API, from a control plane's configuration. */
export const configKubernetesAccess = defineController({
  name: 'kubeaccess.ConfigController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }) },
  outputs: { access: exclusive(KubernetesAccessConfig) },
  reconcile({ config, access }) {
    const machine = kubernetesConfigOf(config.get('v1alpha1'))?.machine
    if (!machine || machine.type === 'worker') return
    const { enabled = false, allowedRoles = [], allowedKubernetesNamespaces = [] } = machine.features?.kubernetesTalosAPIAccess ?? {}
    access.put('config', { enabled, allowedAPIRoles: allowedRoles, allowedKubernetesNamespaces })
  },
})
