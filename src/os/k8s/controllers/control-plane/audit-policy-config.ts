import { defineController, exclusive, weak } from '../../../../cosi/controller.ts'
import { MachineConfig } from '../../../config/resources/machine-config.ts'
import { inEffect } from '../../component/settings.ts'
import { isControlPlane, kubernetesConfigOf } from '../../machine-config.ts'
import { AuditPolicyConfig } from '../../resources/audit-policy-config.ts'
import { ComponentFallback } from '../../resources/component.ts'

/** The default policy: metadata of all requests, without their content. */
const metadataOfAll = { apiVersion: 'audit.k8s.io/v1', kind: 'Policy', rules: [{ level: 'Metadata' }] }

/** The API server's audit policy. */
export const configAuditPolicy = defineController({
  name: 'k8s.ControlPlaneAuditPolicyController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }), fallbacks: weak(ComponentFallback, { id: 'kube-apiserver' }) },
  outputs: { policy: exclusive(AuditPolicyConfig) },
  reconcile({ config, fallbacks, policy }) {
    const machineConfig = inEffect('kube-apiserver', kubernetesConfigOf(config.get('v1alpha1')), fallbacks.get('kube-apiserver'))
    if (!machineConfig || !isControlPlane(machineConfig)) return
    const given = machineConfig.cluster?.apiServer?.auditPolicy
    policy.put('audit-policy', { config: given && Object.keys(given).length > 0 ? given : metadataOfAll })
  },
})
