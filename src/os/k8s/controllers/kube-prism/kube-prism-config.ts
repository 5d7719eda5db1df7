import { defineController, exclusive, weak } from '../../../../cosi/controller.ts'
import { MachineConfig } from '../../../config/resources/machine-config.ts'
import { kubePrismPort, kubernetesConfigOf } from '../../machine-config.ts'
import { KubePrismConfig, KubePrismEndpoint } from '../../resources/kube-prism.ts'

/** KubePrism's address and its upstreams. */
export const configKubePrism = defineController({
  name: 'k8s.KubePrismConfigController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }), endpoints: weak(KubePrismEndpoint, { id: 'k8s-cluster' }) },
  outputs: { prism: exclusive(KubePrismConfig) },
  reconcile({ config, endpoints, prism }) {
    const port = kubePrismPort(kubernetesConfigOf(config.get('v1alpha1')))
    const known = endpoints.get('k8s-cluster')?.spec.endpoints
    if (port === undefined || !known) return
    prism.put('k8s-loadbalancer-config', { host: '127.0.0.1', port, endpoints: known })
  },
})
