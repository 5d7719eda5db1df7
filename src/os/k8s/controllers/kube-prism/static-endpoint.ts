import { defineController, shared, weak } from '../../../../cosi/controller.ts'
import { hostPortOfUrl } from '../../../../wire/host-port.ts'
import { isIp } from '../../../../wire/ip.ts'
import { MachineConfig } from '../../../config/resources/machine-config.ts'
import { kubernetesConfigOf } from '../../machine-config.ts'
import { Endpoint } from '../../resources/endpoint.ts'

/** The address of the control plane from the configuration. */
export const configStaticEndpoint = defineController({
  name: 'k8s.StaticEndpointController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }) },
  outputs: { endpoints: shared(Endpoint) },
  reconcile({ config, endpoints }) {
    const host = hostPortOfUrl(kubernetesConfigOf(config.get('v1alpha1'))?.cluster?.controlPlane?.endpoint)?.host
    if (!host) return
    const address = isIp(host)
    endpoints.put('controlplane', { addresses: address ? [host] : [], hosts: address ? [] : [host] })
  },
})
