import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'

/** What the bootstrap manifests are rendered from. */
export const BootstrapManifestsConfig = defineResource({
  type: 'BootstrapManifestsConfigs.kubernetes.talos.dev',
  namespace: 'controlplane',
  displayType: 'BootstrapManifestsConfig',
  spec: v.object({
    string: v.string(),
    clusterDomain: v.string(),
    podCIDRs: v.optional(v.array(v.string()), []),
    proxyEnabled: v.boolean(),
    proxyImage: v.string(),
    proxyArgs: v.optional(v.array(v.string()), []),
    coreDNSEnabled: v.boolean(),
    coreDNSImage: v.string(),
    dnsServiceIP: v.string(),
    dnsServiceIPv6: v.string(),
    flannelEnabled: v.boolean(),
    flannelImage: v.string(),
    flannelExtraArgs: v.optional(v.array(v.string()), []),
    flannelKubeServiceHost: v.string(),
    flannelKubeServicePort: v.string(),
    flannelKubeNetworkPoliciesEnabled: v.boolean(),
    flannelKubeNetworkPoliciesImage: v.string(),
    podSecurityPolicyEnabled: v.boolean(),
    talosAPIServiceEnabled: v.boolean(),
    cniName: v.string(),
  }),
})
