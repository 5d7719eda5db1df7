import { defineController, exclusive, weak } from '../../../../cosi/controller.ts'
import { MachineConfig } from '../../../config/resources/machine-config.ts'
import { inEffect } from '../../component/settings.ts'
import { isControlPlane, kubernetesConfigOf } from '../../machine-config.ts'
import { AdmissionControlConfig } from '../../resources/admission-control-config.ts'
import { ComponentFallback } from '../../resources/component.ts'

/** Admission plugins from the machine configuration. */
export const configAdmissionControl = defineController({
  name: 'k8s.ControlPlaneAdmissionControlController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }), fallbacks: weak(ComponentFallback, { id: 'kube-apiserver' }) },
  outputs: { admission: exclusive(AdmissionControlConfig) },
  reconcile({ config, fallbacks, admission }) {
    const machineConfig = inEffect('kube-apiserver', kubernetesConfigOf(config.get('v1alpha1')), fallbacks.get('kube-apiserver'))
    if (!machineConfig || !isControlPlane(machineConfig)) return
    const plugins = machineConfig.cluster?.apiServer?.admissionControl ?? []
    admission.put('admission-control', { config: plugins.map(({ name = '', configuration = {} }) => ({ name, configuration })) })
  },
})
