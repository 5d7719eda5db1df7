/** The parts of the machine configuration that Kubernetes uses. */
import type { Resource } from '../../cosi/resource.ts'
import type { V1Alpha1Document } from '../config/documents/v1alpha1.ts'
import { type ClusterSection, configOf } from '../config/public.ts'

/** The v1alpha1 document as far as it concerns Kubernetes. */
export type KubernetesConfig = Pick<V1Alpha1Document, 'machine' | 'cluster'>

/** Extra arguments with every value as a list. */
export function extraArgsOf(config: Readonly<Record<string, string | string[]>> | undefined): Record<string, { values: string[] }> {
  return Object.fromEntries(Object.entries(config ?? {}).map(([name, value]) => [name, { values: Array.isArray(value) ? value : [value] }]))
}

/** Whether kubelets request their serving certificates from the cluster instead of signing them themselves. */
export function requestsServingCertificates(config: KubernetesConfig | undefined): boolean {
  const { extraArgs, extraConfig } = config?.machine?.kubelet ?? {}
  const flag = extraArgsOf(extraArgs)['rotate-server-certificates']?.values.at(-1)
  return flag === undefined ? extraConfig?.serverTLSBootstrap === true : flag === 'true'
}

/** Whether the configuration is that of a control plane node. */
export function isControlPlane(config: KubernetesConfig | undefined): boolean {
  const type = config?.machine?.type
  return type === 'controlplane' || type === 'init'
}

/** The cluster's DNS domain. */
export const dnsDomain = (cluster: ClusterSection | undefined): string => cluster?.network?.dnsDomain || 'cluster.local'

/** The port of a control plane node's API server. */
export const localPort = (cluster: ClusterSection | undefined): number => cluster?.controlPlane?.localAPIServerPort || 6443

/** KubePrism's port when it is enabled. */
export const kubePrismPort = (config: KubernetesConfig | undefined): number | undefined =>
  config?.machine?.features?.kubePrism?.enabled ? config.machine.features.kubePrism.port || 7445 : undefined

/** The v1alpha1 document of a machine configuration resource: validated, decoded once. */
export const kubernetesConfigOf = (resource: Resource<string> | undefined): KubernetesConfig | undefined =>
  resource && (configOf(resource).v1alpha1 ?? {})
