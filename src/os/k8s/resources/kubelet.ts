import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { integer } from '../../values.ts'

const extraMounts = v.optional(
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
)

/** The kubelet's settings from the machine configuration. */
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
    extraMounts,
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

/** How the kubelet runs: image, arguments, mounts, configuration. */
export const KubeletSpec = defineResource({
  type: 'KubeletSpecs.kubernetes.talos.dev',
  namespace: 'k8s',
  displayType: 'KubeletSpec',
  sensitive: true,
  spec: v.object({
    image: v.string(),
    args: v.optional(v.array(v.string())),
    extraMounts,
    expectedNodename: v.optional(v.string()),
    config: v.optional(v.record(v.string(), v.unknown()), {}),
    credentialProviderConfig: v.optional(v.record(v.string(), v.unknown())),
  }),
})

/** States that the kubelet has a kubeconfig of its own. */
export const KubeletKubeconfig = defineResource({
  type: 'KubeletKubeconfigs.kubernetes.talos.dev',
  namespace: 'k8s',
  displayType: 'KubeletKubeconfig',
  columns: { Hash: '{.hash}' },
  spec: v.object({ hash: v.string() }),
})

/** Held while the kubelet's pods may run. */
export const KubeletLifecycle = defineResource({
  type: 'KubeletLifecycles.kubernetes.talos.dev',
  namespace: 'k8s',
  displayType: 'KubeletLifecycle',
  spec: v.object({}),
})
