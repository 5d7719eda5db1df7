import type { SpecOf } from '../../../cosi/resource.ts'
import type { KubeObject } from '../../../kube/object.ts'
import type { BootstrapManifestsConfig } from '../resources/bootstrap-manifests-config.ts'
import { apiAccess } from './api-access.ts'
import { coreDNS, coreDNSService } from './core-dns.ts'
import { flannel } from './flannel.ts'
import { bootstrapToken, firstIsApproved, nodesMayAsk, nodesMaySeeEndpoints, renewalIsApproved } from './joining.ts'
import { kubeconfigInCluster, kubeProxy } from './kube-proxy.ts'
import { configMap } from './objects.ts'

/** The manifests of a new cluster, by ids in whose order they are applied. */
export function bootstrapManifests(
  config: SpecOf<typeof BootstrapManifestsConfig>,
  token: { bootstrapTokenID: string; bootstrapTokenSecret: string },
): Record<string, KubeObject[]> {
  return {
    '00-kubelet-bootstrapping-token': bootstrapToken(token.bootstrapTokenID, token.bootstrapTokenSecret),
    '01-csr-approver-role-binding': firstIsApproved(),
    '01-csr-node-bootstrap': nodesMayAsk(),
    '01-csr-renewal-role-binding': renewalIsApproved(),
    ...(config.flannelEnabled && { '05-flannel': flannel(config) }),
    ...(config.proxyEnabled && { '10-kube-proxy': kubeProxy(config) }),
    ...(config.coreDNSEnabled && { '11-core-dns': coreDNS(config), '11-core-dns-svc': coreDNSService(config) }),
    '11-kube-config-in-cluster': [configMap('kubeconfig-in-cluster', { kubeconfig: kubeconfigInCluster(config.string) })],
    '11-talos-node-rbac-template': nodesMaySeeEndpoints(),
    ...(config.talosAPIServiceEnabled && { '13-talos-service-account-crd': apiAccess() }),
  }
}
