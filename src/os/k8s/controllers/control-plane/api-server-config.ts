import { defineController, exclusive, weak } from '../../../../cosi/controller.ts'
import { serviceSubnets } from '../../../config/public.ts'
import { MachineConfig } from '../../../config/resources/machine-config.ts'
import { annotated, inEffect } from '../../component/settings.ts'
import { secretsFolder } from '../../control-plane/arguments.ts'
import { defaultImages } from '../../images.ts'
import { extraArgsOf, isControlPlane, kubernetesConfigOf, localPort, requestsServingCertificates } from '../../machine-config.ts'
import { APIServerConfig } from '../../resources/api-server-config.ts'
import { ComponentFallback } from '../../resources/component.ts'
import { podResources, volumesOf } from './component-config.ts'

/** kube-apiserver's settings from the machine configuration. */
export const configApiServer = defineController({
  name: 'k8s.ControlPlaneAPIServerController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }), fallbacks: weak(ComponentFallback, { id: 'kube-apiserver' }) },
  outputs: { apiServer: exclusive(APIServerConfig) },
  reconcile({ config, fallbacks, apiServer }) {
    const machineConfig = inEffect('kube-apiserver', kubernetesConfigOf(config.get('v1alpha1')), fallbacks.get('kube-apiserver'))
    if (!machineConfig || !isControlPlane(machineConfig)) return
    const { cluster } = machineConfig
    const component = cluster?.apiServer
    apiServer.put(
      'kube-apiserver',
      {
        image: component?.image || defaultImages.apiServer,
        cloudProvider: cluster?.externalCloudProvider?.enabled ? 'external' : '',
        controlPlaneEndpoint: cluster?.controlPlane?.endpoint ?? '',
        etcdServers: ['https://localhost:2379'],
        localPort: localPort(cluster),
        serviceCIDR: serviceSubnets(cluster),
        extraArgs: {
          // Self-signed certificates of kubelets cannot be verified: logs and exec would fail.
          ...(requestsServingCertificates(machineConfig) && {
            'kubelet-certificate-authority': { values: [`${secretsFolder('kube-apiserver')}/ca.crt`] },
          }),
          ...extraArgsOf(component?.extraArgs),
        },
        extraVolumes: volumesOf(component),
        environmentVariables: component?.env ?? {},
        advertisedAddress: '$(POD_IP)',
        resources: podResources(component),
      },
      { annotations: annotated('kube-apiserver', machineConfig) },
    )
  },
})
