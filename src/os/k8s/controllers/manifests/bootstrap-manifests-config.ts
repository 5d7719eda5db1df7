import { defineController, exclusive, weak } from '../../../../cosi/controller.ts'
import { isIPv6, nthAddress, parsePrefix } from '../../../../wire/prefix.ts'
import { type ClusterSection, podSubnets, serviceSubnets } from '../../../config/public.ts'
import { MachineConfig } from '../../../config/resources/machine-config.ts'
import { buildArguments, overwrite } from '../../arguments.ts'
import { defaultImages } from '../../images.ts'
import { dnsDomain, extraArgsOf, isControlPlane, kubePrismPort, kubernetesConfigOf } from '../../machine-config.ts'
import { BootstrapManifestsConfig } from '../../resources/bootstrap-manifests-config.ts'

/** The inputs of the manifests of a new cluster. */
export const configBootstrapManifests = defineController({
  name: 'k8s.ControlPlaneBootstrapManifestsController',
  effects: 'none',
  inputs: { config: weak(MachineConfig, { id: 'v1alpha1' }) },
  outputs: { manifests: exclusive(BootstrapManifestsConfig) },
  reconcile({ config, manifests }) {
    const machineConfig = kubernetesConfigOf(config.get('v1alpha1'))
    if (!machineConfig || !isControlPlane(machineConfig)) return
    const { cluster, machine } = machineConfig
    const prism = kubePrismPort(machineConfig)
    const cni = cluster?.network?.cni
    const cniName = cni?.name || 'flannel'
    manifests.put('manifests', {
      string: prism ? `https://127.0.0.1:${prism}` : (cluster?.controlPlane?.endpoint ?? ''),
      clusterDomain: dnsDomain(cluster),
      podCIDRs: podSubnets(cluster),
      proxyEnabled: !cluster?.proxy?.disabled,
      proxyImage: cluster?.proxy?.image || defaultImages.proxy,
      proxyArgs: proxyArguments(cluster),
      coreDNSEnabled: !cluster?.coreDNS?.disabled,
      coreDNSImage: cluster?.coreDNS?.image || defaultImages.coreDNS,
      ...dnsServiceAddresses(serviceSubnets(cluster)),
      flannelEnabled: cniName === 'flannel',
      flannelImage: defaultImages.flannel,
      flannelExtraArgs: cni?.flannel?.extraArgs ?? [],
      flannelKubeServiceHost: prism ? '127.0.0.1' : '',
      flannelKubeServicePort: prism ? String(prism) : '',
      flannelKubeNetworkPoliciesEnabled: cni?.flannel?.kubeNetworkPoliciesEnabled ?? false,
      flannelKubeNetworkPoliciesImage: defaultImages.networkPolicies,
      podSecurityPolicyEnabled: false,
      talosAPIServiceEnabled: machine?.features?.kubernetesTalosAPIAccess?.enabled ?? false,
      cniName,
    })
  },
})

function proxyArguments(cluster: ClusterSection | undefined): string[] {
  const image = cluster?.proxy?.image || defaultImages.proxy
  return buildArguments(
    'kube-proxy',
    {
      'cluster-cidr': overwrite(podSubnets(cluster)),
      'hostname-override': overwrite('$(NODE_NAME)'),
      kubeconfig: overwrite('/etc/kubernetes/kubeconfig'),
      'proxy-mode': overwrite(cluster?.proxy?.mode || (minorOf(image) >= 31 ? 'nftables' : 'iptables')),
      'conntrack-max-per-core': overwrite('0'),
    },
    extraArgsOf(cluster?.proxy?.extraArgs),
  )
}

/** The minor version in an image's tag; an unreadable tag counts as current. */
export function minorOf(image: string): number {
  return Number(image.match(/:v?1\.(\d+)/)?.[1] ?? 99)
}

/** By convention the tenth address of the service network is the DNS server's; one per address family. */
export function dnsServiceAddresses(subnets: readonly string[]): { dnsServiceIP: string; dnsServiceIPv6: string } {
  const tenth = (subnet: string | undefined) => (subnet ? nthAddress(parsePrefix(subnet), 10) : '')
  return { dnsServiceIP: tenth(subnets.find((one) => !isIPv6(one))), dnsServiceIPv6: tenth(subnets.find(isIPv6)) }
}
