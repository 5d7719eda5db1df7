import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { integer } from '../../values.ts'

/** How the kubelet should run, as the machine configuration says. */
export const KubeletConfig = defineResource({
  type: 'KubeletConfigs.kubernetes.talos.dev',
  namespace: 'k8s',
  displayType: 'KubeletConfig',
  sensitive: true,
  spec: v.object({
    image: v.string(),
    clusterDNS: v.optional(v.array(v.string()), []),
    clusterDomain: v.string(),
    extraArgs: v.optional(v.record(v.string(), v.object({ values: v.optional(v.array(v.string()), []) }))),
    extraMounts: v.optional(
      v.array(
        v.object({
          destination: v.string(),
          type: v.string(),
          source: v.string(),
          options: v.optional(v.array(v.string()), []),
          uidmappings: v.optional(v.array(v.object({ containerid: integer, hostid: integer, size: integer })), []),
          gidmappings: v.optional(v.array(v.object({ containerid: integer, hostid: integer, size: integer })), []),
        }),
      ),
    ),
    extraConfig: v.optional(v.record(v.string(), v.unknown())),
    cloudProviderExternal: v.boolean(),
    defaultRuntimeSeccompEnabled: v.boolean(),
    skipNodeRegistration: v.boolean(),
    staticPodListURL: v.string(),
    disableManifestsDirectory: v.boolean(),
    enableFSQuotaMonitoring: v.boolean(),
    credentialProviderConfig: v.optional(v.record(v.string(), v.unknown())),
    allowSchedulingOnControlPlane: v.boolean(),
  }),
})
