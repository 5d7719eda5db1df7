import { defineController, exclusive, weak } from '../../../../cosi/controller.ts'
import { MachineConfig } from '../../../config/resources/machine-config.ts'
import { inEffect } from '../../component/settings.ts'
import { defaultImages } from '../../images.ts'
import { isControlPlane, kubernetesConfigOf } from '../../machine-config.ts'
import { AuthorizationConfig } from '../../resources/authorization-config.ts'
import { ComponentFallback } from '../../resources/component.ts'

/** Authorizers: Node and RBAC always, then those of the machine configuration. */
export const configAuthorization = defineController({
  name: 'k8s.ControlPlaneAuthorizationPolicyController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }), fallbacks: weak(ComponentFallback, { id: 'kube-apiserver' }) },
  outputs: { authorization: exclusive(AuthorizationConfig) },
  reconcile({ config, fallbacks, authorization }) {
    const machineConfig = inEffect('kube-apiserver', kubernetesConfigOf(config.get('v1alpha1')), fallbacks.get('kube-apiserver'))
    if (!machineConfig || !isControlPlane(machineConfig)) return
    const apiServer = machineConfig.cluster?.apiServer
    const given = (apiServer?.authorizationConfig ?? []).map(({ type = '', name = '', webhook = {} }) => ({ type, name, webhook }))
    const missing = [
      { type: 'Node', name: 'node', webhook: {} },
      { type: 'RBAC', name: 'rbac', webhook: {} },
    ].filter(({ type }) => !given.some((authorizer) => authorizer.type === type))
    authorization.put('authorization', { image: apiServer?.image || defaultImages.apiServer, config: [...missing, ...given] })
  },
})
