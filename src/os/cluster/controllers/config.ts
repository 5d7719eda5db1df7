import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import { declared } from '../../config/public.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import { DiscoveryConfig } from '../resources/discovery-config.ts'
import { Info } from '../resources/info.ts'

const defaultEndpoint = 'https://discovery.talos.dev/'

/** The name and id of the cluster this machine is part of. */
export const configInfo: Controller = defineController({
  name: 'cluster.InfoController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }) },
  outputs: { info: exclusive(Info) },
  reconcile({ config, info }) {
    const found = declared(config.get('v1alpha1'))
    if (found) info.put('current', { clusterId: found.cluster.id ?? '', clusterName: found.cluster.clusterName ?? '' })
  },
})

/** Which registries announce the members of the cluster. */
export const configDiscovery: Controller = defineController({
  name: 'cluster.ConfigController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }) },
  outputs: { discovery: exclusive(DiscoveryConfig) },
  reconcile({ config, discovery }) {
    const found = declared(config.get('v1alpha1'))
    if (!found) return
    const { enabled = false, registries = {} } = found.cluster.discovery ?? {}
    const endpoint = new URL(registries.service?.endpoint || defaultEndpoint)
    const insecure = endpoint.protocol === 'http:'
    discovery.put('cluster', {
      discoveryEnabled: enabled,
      registryKubernetesEnabled: enabled && registries.kubernetes?.disabled === false,
      registryServiceEnabled: enabled && registries.service?.disabled !== true,
      serviceEndpoint: `${endpoint.hostname}:${endpoint.port || (insecure ? 80 : 443)}`,
      ...(insecure && { serviceEndpointInsecure: true }),
      serviceEncryptionKey: Buffer.from(found.cluster.secret ?? '', 'base64'),
      serviceClusterID: found.cluster.id ?? '',
    })
  },
})
