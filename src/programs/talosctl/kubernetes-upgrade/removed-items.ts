/** What Kubernetes removed, by the minor version from which it is gone: a component that still names it does not start. */

/** A resource that is no longer served. */
export interface RemovedResource {
  readonly plural: string
  readonly apiVersion: string
  readonly kind: string
}

/** What one minor version removed. */
export interface RemovedItems {
  readonly featureGates: readonly string[]
  readonly admissionPlugins?: readonly string[]
  /** Component → flags without dashes. */
  readonly flags?: Readonly<Record<string, readonly string[]>>
  readonly resources?: readonly RemovedResource[]
}

const words = (text: string): string[] => text.trim().split(/\s+/)

/** The minor version to which an upgrade goes → what is gone in it. */
export const removedItems: Readonly<Record<number, RemovedItems>> = {
  31: {
    featureGates: words(
      `APIPriorityAndFairness CSINodeExpandSecret ConsistentHTTPGetHandlers DefaultHostNetworkHostPortsInPodTemplates
      ServiceNodePortStaticSubrange SkipReadOnlyValidationGCE`,
    ),
    flags: {
      kubelet: ['keep-terminated-pod-volumes', 'iptables-masquerade-bit', 'iptables-drop-bit'],
      'kube-controller-manager': [
        'volume-host-cidr-denylist',
        'volume-host-allow-local-loopback',
        'horizontal-pod-autoscaler-upscale-delay',
        'horizontal-pod-autoscaler-downscale-delay',
      ],
    },
  },
  32: {
    featureGates: words(
      `AllowServiceLBStatusOnNonLB CloudDualStackNodeIPs DRAControlPlaneController HPAContainerMetrics KMSv2 KMSv2KDF
      LegacyServiceAccountTokenCleanUp MinDomainsInPodTopologySpread NewVolumeManagerReconstruction NodeOutOfServiceVolumeDetach
      ServerSideApply ServerSideFieldValidation StableLoadBalancerNodeSet ValidatingAdmissionPolicy ZeroLimitedNominalConcurrencyShares`,
    ),
    resources: [{ plural: 'podschedulingcontexts', apiVersion: 'resource.k8s.io/v1alpha3', kind: 'PodSchedulingContext' }],
  },
  33: {
    featureGates: words(
      `AppArmor AppArmorFields CPUManager DisableCloudProviders DisableKubeletCloudCredentialProviders JobPodFailurePolicy
      KubeProxyDrainingTerminatingNodes PDBUnhealthyPodEvictionPolicy PersistentVolumeLastPhaseTransitionTime VolumeCapacityPriority`,
    ),
    flags: { 'kube-apiserver': ['cloud-config'] },
  },
  34: {
    featureGates: words('DevicePluginCDIDevices LegacySidecarContainers PodDisruptionConditions'),
    flags: { kubelet: ['cloud-config'] },
  },
  35: {
    featureGates: words('SizeMemoryBackedVolumes UserNamespacesHostNetworkSupport'),
    flags: { kubelet: ['pod-infra-container-image'] },
  },
  36: {
    featureGates: words('CSIMigrationPortworx HonorPVReclaimPolicy InTreePluginPortworxUnregister WatchFromStorageWithoutResourceVersion'),
  },
}
