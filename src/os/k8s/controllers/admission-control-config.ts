import { defineController, exclusive, weak } from '../../../cosi/controller.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import { isControlPlane, kubernetesConfigOf } from '../machine-config.ts'
import { AdmissionControlConfig } from '../resources/admission-control-config.ts'

/** Which admission plugins the machine configuration sets up. */
export const configAdmissionControl = defineController({
  name: 'k8s.ControlPlaneAdmissionControlController',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }) },
  outputs: { admission: exclusive(AdmissionControlConfig) },
  reconcile({ config, admission }) {
    const machineConfig = kubernetesConfigOf(config.get('v1alpha1'))
    if (!machineConfig || !isControlPlane(machineConfig)) return
    const plugins = machineConfig.cluster?.apiServer?.admissionControl ?? []
    admission.put('admission-control', { config: plugins.map(({ name, configuration }) => ({ name, configuration: configuration ?? {} })) })
  },
})
