import { defineController, exclusive, weak } from '../../../../cosi/controller.ts'
import { hostPortOfUrl } from '../../../../wire/host-port.ts'
import { Member } from '../../../cluster/resources/member.ts'
import { MachineConfig } from '../../../config/resources/machine-config.ts'
import { isControlPlane, kubePrismPort, kubernetesConfigOf, localPort } from '../../machine-config.ts'
import { KubePrismEndpoint } from '../../resources/kube-prism.ts'

/** All addresses under which an API server may answer. */
export const findKubePrismEndpoints = defineController({
  name: 'k8s.KubePrismEndpointsController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }), members: weak(Member) },
  outputs: { endpoints: exclusive(KubePrismEndpoint) },
  reconcile({ config, members, endpoints }) {
    const machineConfig = kubernetesConfigOf(config.get('v1alpha1'))
    if (kubePrismPort(machineConfig) === undefined) return
    const { cluster } = machineConfig ?? {}
    const given = hostPortOfUrl(cluster?.controlPlane?.endpoint)
    endpoints.put('k8s-cluster', {
      endpoints: [
        ...(given ? [given] : []),
        ...(isControlPlane(machineConfig) ? [{ host: 'localhost', port: localPort(cluster) }] : []),
        ...members
          .list()
          .flatMap(({ spec: { addresses, controlPlane } }) =>
            controlPlane ? addresses.map((host) => ({ host, port: controlPlane.port })) : [],
          ),
      ],
    })
  },
})
