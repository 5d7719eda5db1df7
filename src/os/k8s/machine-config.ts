/** The parts of the machine configuration that Kubernetes is made from, keyed as in its YAML. */
import { parseAllDocuments } from 'yaml'
import type { Resource } from '../../cosi/resource.ts'

/** A flag's value or values. */
export type ExtraArgsConfig = Record<string, string | string[]>

interface ComponentConfig {
  image?: string
  extraArgs?: ExtraArgsConfig
  extraVolumes?: { hostPath: string; mountPath: string; readonly?: boolean }[]
  env?: Record<string, string>
  resources?: { requests?: Record<string, unknown>; limits?: Record<string, unknown> }
}

/** What `machine:` says about Kubernetes. */
export interface MachineSection {
  type?: string
  kubelet?: {
    image?: string
    clusterDNS?: string[]
    extraArgs?: ExtraArgsConfig
    extraMounts?: {
      destination: string
      type?: string
      source?: string
      options?: string[]
      uidMappings?: IdMapping[]
      gidMappings?: IdMapping[]
    }[]
    extraConfig?: Record<string, unknown>
    credentialProviderConfig?: Record<string, unknown>
    defaultRuntimeSeccompProfileEnabled?: boolean
    registerWithFQDN?: boolean
    nodeIP?: { validSubnets?: string[] }
    skipNodeRegistration?: boolean
    disableManifestsDirectory?: boolean
  }
  pods?: Record<string, unknown>[]
  nodeLabels?: Record<string, string>
  nodeAnnotations?: Record<string, string>
  nodeTaints?: Record<string, string>
  features?: {
    kubePrism?: { enabled?: boolean; port?: number }
    hostDNS?: { enabled?: boolean; forwardKubeDNSToHost?: boolean }
    kubernetesTalosAPIAccess?: { enabled?: boolean; allowedRoles?: string[]; allowedKubernetesNamespaces?: string[] }
    diskQuotaSupport?: boolean
  }
}

interface IdMapping {
  containerID: number
  hostID: number
  size: number
}

/** What `cluster:` says. */
export interface ClusterSection {
  clusterName?: string
  controlPlane?: { endpoint?: string; localAPIServerPort?: number }
  network?: {
    cni?: { name?: string; urls?: string[]; flannel?: { extraArgs?: string[]; kubeNetworkPoliciesEnabled?: boolean } }
    dnsDomain?: string
    podSubnets?: string[]
    serviceSubnets?: string[]
  }
  apiServer?: ComponentConfig & {
    certSANs?: string[]
    admissionControl?: { name: string; configuration: Record<string, unknown> }[]
    auditPolicy?: Record<string, unknown>
    authorizationConfig?: { type: string; name: string; webhook?: Record<string, unknown> }[]
  }
  controllerManager?: ComponentConfig
  scheduler?: ComponentConfig & { config?: Record<string, unknown> }
  proxy?: { disabled?: boolean; image?: string; mode?: string; extraArgs?: ExtraArgsConfig }
  coreDNS?: { disabled?: boolean; image?: string }
  etcd?: { image?: string; extraArgs?: ExtraArgsConfig; subnet?: string; advertisedSubnets?: string[]; listenSubnets?: string[] }
  externalCloudProvider?: { enabled?: boolean; manifests?: string[] }
  extraManifests?: string[]
  extraManifestHeaders?: Record<string, string>
  inlineManifests?: { name: string; contents: string }[]
  adminKubeconfig?: { certLifetime?: string }
  allowSchedulingOnControlPlanes?: boolean
  allowSchedulingOnMasters?: boolean
}

/** The legacy document of a machine configuration as far as it concerns Kubernetes. */
export interface KubernetesConfig {
  machine?: MachineSection
  cluster?: ClusterSection
}

/** Extra arguments with every value as a list. */
export function extraArgsOf(config: ExtraArgsConfig | undefined): Record<string, { values: string[] }> {
  return Object.fromEntries(
    Object.entries(config ?? {}).map(([name, value]) => [name, { values: Array.isArray(value) ? value.map(String) : [String(value)] }]),
  )
}

/** Whether the configuration is a control plane's. */
export function isControlPlane(config: KubernetesConfig | undefined): boolean {
  const type = config?.machine?.type
  return type === 'controlplane' || type === 'init'
}

/** Subnets with the cluster's defaults. */
export const podSubnets = (cluster: ClusterSection | undefined): string[] => filled(cluster?.network?.podSubnets, ['10.244.0.0/16'])
export const serviceSubnets = (cluster: ClusterSection | undefined): string[] => filled(cluster?.network?.serviceSubnets, ['10.96.0.0/12'])

/** The cluster's DNS domain. */
export const dnsDomain = (cluster: ClusterSection | undefined): string => cluster?.network?.dnsDomain || 'cluster.local'

/** The port of a control plane node's API server. */
export const localPort = (cluster: ClusterSection | undefined): number => cluster?.controlPlane?.localAPIServerPort || 6443

/** KubePrism's port when it is switched on. */
export const kubePrismPort = (config: KubernetesConfig | undefined): number | undefined =>
  config?.machine?.features?.kubePrism?.enabled ? config.machine.features.kubePrism.port || 7445 : undefined

function filled(given: string[] | undefined, otherwise: string[]): string[] {
  return given && given.length > 0 ? given : otherwise
}

/** The v1alpha1 document of a machine configuration resource. */
export function kubernetesConfigOf(resource: Resource<string> | undefined): KubernetesConfig | undefined {
  if (!resource) return undefined
  let config = parsed.get(resource)
  if (config === undefined) {
    const documents = [...parseAllDocuments(resource.spec, { logLevel: 'silent' })].map((document) => document.toJS({ maxAliasCount: 100 }))
    config = (documents.find((document) => document && typeof document === 'object' && !('kind' in document)) as KubernetesConfig) ?? {}
    parsed.set(resource, config)
  }
  return config
}

const parsed = new WeakMap<Resource<string>, KubernetesConfig>()
