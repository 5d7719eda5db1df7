import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import { declared, find, findAll } from '../../config/public.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import { KubeSpanConfig as KubeSpanConfigDocument, KubeSpanEndpointsConfig } from '../documents/kubespan.ts'
import { KubeSpanConfig } from '../resources/kube-span-config.ts'

/** Declares the mesh settings of this node. */
export const configKubeSpan: Controller = defineController({
  name: 'kubespan.ConfigController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }) },
  outputs: { mesh: exclusive(KubeSpanConfig) },
  reconcile({ config, mesh }) {
    const found = declared(config.get('v1alpha1'))
    const settings = found && (find(found, KubeSpanConfigDocument) ?? found.machine.network?.kubespan)
    if (!found || !settings) return
    const { enabled = false, advertiseKubernetesNetworks, allowDownPeerBypass, harvestExtraEndpoints, mtu, filters } = settings
    const { id, secret, discovery } = found.cluster
    if (enabled && !(id && secret && discovery?.enabled))
      throw new Error('KubeSpan needs "cluster.discovery.enabled: true", "cluster.id" and "cluster.secret" in the configuration')
    const announced = findAll(found, KubeSpanEndpointsConfig).flatMap(({ extraAnnouncedEndpoints }) => extraAnnouncedEndpoints ?? [])
    mesh.put('kubespan', {
      enabled,
      clusterId: id ?? '',
      sharedSecret: secret ?? '',
      forceRouting: allowDownPeerBypass !== true,
      advertiseKubernetesNetworks: advertiseKubernetesNetworks === true,
      ...(mtu && { mtu }),
      ...(filters?.endpoints?.length && { endpointFilters: filters.endpoints }),
      harvestExtraEndpoints: harvestExtraEndpoints === true,
      ...(announced.length > 0 && { extraEndpoints: announced }),
      ...(filters?.excludeAdvertisedNetworks?.length && { excludeAdvertisedNetworks: filters.excludeAdvertisedNetworks }),
    })
  },
})
