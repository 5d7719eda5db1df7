import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { bytes } from '../../values.ts'

/** Which registries of discovery are used, and with which key. */
export const DiscoveryConfig = defineResource({
  type: 'DiscoveryConfigs.cluster.talos.dev',
  namespace: 'config',
  displayType: 'DiscoveryConfig',
  sensitive: true,
  spec: v.object({
    discoveryEnabled: v.boolean(),
    registryKubernetesEnabled: v.boolean(),
    registryServiceEnabled: v.boolean(),
    serviceEndpoint: v.string(),
    serviceEndpointInsecure: v.optional(v.boolean()),
    serviceEncryptionKey: bytes,
    serviceClusterID: v.string(),
  }),
})
