import { defineController, exclusive, weak } from '../../../../cosi/controller.ts'
import { type MachineSection, serviceSubnets } from '../../../config/public.ts'
import { MachineConfig } from '../../../config/resources/machine-config.ts'
import { annotated, inEffect } from '../../component/settings.ts'
import { defaultImages } from '../../images.ts'
import { dnsDomain, extraArgsOf, kubernetesConfigOf } from '../../machine-config.ts'
import { ComponentFallback } from '../../resources/component.ts'
import { KubeletConfig } from '../../resources/kubelet.ts'
import { StaticPodServerStatus } from '../../resources/static-pod.ts'
import { dnsServiceAddresses } from '../manifests/bootstrap-manifests-config.ts'

type Mount = NonNullable<NonNullable<MachineSection['kubelet']>['extraMounts']>[number]
type IdMapping = NonNullable<Mount['uidMappings']>[number]

/** The kubelet's settings from the machine configuration. */
export const configKubelet = defineController({
  name: 'k8s.KubeletConfigController',
  effects: 'none',
  inputs: {
    config: weak(MachineConfig, { id: 'v1alpha1' }),
    fallbacks: weak(ComponentFallback, { id: 'kubelet' }),
    server: weak(StaticPodServerStatus, { id: 'static-pod-server-status' }),
  },
  outputs: { kubelet: exclusive(KubeletConfig) },
  reconcile({ config, fallbacks, server, kubelet }) {
    const machineConfig = inEffect('kubelet', kubernetesConfigOf(config.get('v1alpha1')), fallbacks.get('kubelet'))
    const staticPodListURL = server.get('static-pod-server-status')?.spec.url
    if (!machineConfig?.cluster || !staticPodListURL) return
    const { machine, cluster } = machineConfig
    const given = machine?.kubelet ?? {}
    const { dnsServiceIP, dnsServiceIPv6 } = dnsServiceAddresses(serviceSubnets(cluster))
    const clusterDNS = given.clusterDNS?.length ? given.clusterDNS : [dnsServiceIP, dnsServiceIPv6].filter((address) => address !== '')
    kubelet.put(
      'kubelet',
      {
        image: given.image || defaultImages.kubelet,
        clusterDNS,
        clusterDomain: dnsDomain(cluster),
        ...(given.extraArgs && { extraArgs: extraArgsOf(given.extraArgs) }),
        ...(given.extraMounts && { extraMounts: given.extraMounts.map(mountOf) }),
        ...(given.extraConfig && { extraConfig: given.extraConfig }),
        cloudProviderExternal: cluster.externalCloudProvider?.enabled ?? false,
        defaultRuntimeSeccompEnabled: given.defaultRuntimeSeccompProfileEnabled ?? false,
        skipNodeRegistration: given.skipNodeRegistration ?? false,
        staticPodListURL,
        disableManifestsDirectory: given.disableManifestsDirectory ?? false,
        enableFSQuotaMonitoring: machine?.features?.diskQuotaSupport ?? false,
        ...(given.credentialProviderConfig && { credentialProviderConfig: given.credentialProviderConfig }),
        allowSchedulingOnControlPlane: cluster.allowSchedulingOnControlPlanes ?? cluster.allowSchedulingOnMasters ?? false,
      },
      { annotations: annotated('kubelet', machineConfig) },
    )
  },
})

function mountOf({ destination = '', type = 'bind', source = '', options = [], uidMappings = [], gidMappings = [] }: Mount) {
  const mapping = ({ containerID = 0, hostID = 0, size = 0 }: IdMapping) => ({
    containerid: containerID,
    hostid: hostID,
    size,
  })
  return { destination, type, source, options, uidmappings: uidMappings.map(mapping), gidmappings: gidMappings.map(mapping) }
}
