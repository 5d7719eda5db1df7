/** The two configurations of a new cluster, as plain values keyed like their YAML. */

import { unbracketed } from '../../../wire/host-port.ts'
import { defaultPodSubnet, defaultServiceSubnet } from '../cluster-networks.ts'
import type { V1Alpha1Document } from '../documents/v1alpha1.ts'
import type { SecretsBundle } from './secrets.ts'
import { defaultInstallImage, defaultKubernetesVersion, kubernetesImages } from './versions.ts'

/** The inputs of generated configurations. */
export interface GenerateOptions {
  clusterName: string
  /** `https://host:port` of the Kubernetes API. */
  endpoint: string
  secrets: SecretsBundle
  kubernetesVersion?: string
  dnsDomain?: string
  podSubnets?: string[]
  serviceSubnets?: string[]
  /** More names and addresses for the certificates of the machine API and of Kubernetes. */
  additionalSans?: string[]
  /** Left out for machines that are not installed: containers. */
  install?: { disk?: string; image?: string } | false
  /** Registry → URLs of its mirrors. */
  registryMirrors?: Record<string, string[]>
  nameservers?: string[]
  discovery?: boolean
  /** Another discovery server than the public one. */
  discoveryEndpoint?: string
  kubespan?: boolean
  cni?: { name: 'flannel' | 'custom' | 'none'; urls?: string[] }
}

const auditPolicy = { apiVersion: 'audit.k8s.io/v1', kind: 'Policy', rules: [{ level: 'Metadata' }] }

const podSecurity = {
  name: 'PodSecurity',
  configuration: {
    apiVersion: 'pod-security.admission.config.k8s.io/v1',
    kind: 'PodSecurityConfiguration',
    defaults: {
      audit: 'restricted',
      'audit-version': 'latest',
      enforce: 'baseline',
      'enforce-version': 'latest',
      warn: 'restricted',
      'warn-version': 'latest',
    },
    exemptions: { namespaces: ['kube-system'], runtimeClasses: [], usernames: [] },
  },
}

function machine(type: 'controlplane' | 'worker', options: GenerateOptions): NonNullable<V1Alpha1Document['machine']> {
  const { secrets, additionalSans = [], install = {}, registryMirrors = {}, nameservers = [] } = options
  const images = kubernetesImages(options.kubernetesVersion ?? defaultKubernetesVersion)
  const mirrors = Object.entries(registryMirrors).map(([name, endpoints]) => [name, { endpoints }] as const)
  return {
    type,
    token: secrets.trustdinfo.token,
    ca: type === 'controlplane' ? secrets.certs.os : { crt: secrets.certs.os.crt, key: '' },
    certSANs: additionalSans,
    kubelet: { image: images.kubelet, defaultRuntimeSeccompProfileEnabled: true, disableManifestsDirectory: true },
    ...(nameservers.length && { network: { nameservers } }),
    ...(install && {
      install: { disk: install.disk ?? '/dev/sda', image: install.image ?? defaultInstallImage, wipe: false, grubUseUKICmdline: true },
    }),
    ...(mirrors.length && { registries: { mirrors: Object.fromEntries(mirrors) } }),
    features: {
      diskQuotaSupport: true,
      kubePrism: { enabled: true, port: 7445 },
      hostDNS: { enabled: true, forwardKubeDNSToHost: true },
    },
    ...(type === 'controlplane' && { nodeLabels: { 'node.kubernetes.io/exclude-from-external-load-balancers': '' } }),
  }
}

function sharedCluster(options: GenerateOptions) {
  const { secrets, discovery = true, discoveryEndpoint, cni } = options
  return {
    id: secrets.cluster.id,
    secret: secrets.cluster.secret,
    controlPlane: { endpoint: options.endpoint },
    clusterName: options.clusterName,
    network: {
      ...(cni && { cni: { name: cni.name, ...(cni.urls?.length && { urls: cni.urls }) } }),
      dnsDomain: options.dnsDomain ?? 'cluster.local',
      podSubnets: options.podSubnets ?? [defaultPodSubnet],
      serviceSubnets: options.serviceSubnets ?? [defaultServiceSubnet],
    },
    token: secrets.secrets.bootstraptoken,
    discovery: {
      enabled: discovery,
      registries: { kubernetes: { disabled: true }, service: discoveryEndpoint ? { endpoint: discoveryEndpoint } : {} },
    },
  }
}

/** The v1alpha1 document of a control plane. */
export function controlPlaneDocument(options: GenerateOptions): V1Alpha1Document {
  const { secrets, additionalSans = [] } = options
  const { certs } = secrets
  const images = kubernetesImages(options.kubernetesVersion ?? defaultKubernetesVersion)
  const { discovery, ...cluster } = sharedCluster(options)
  const host = unbracketed(new URL(options.endpoint).hostname)
  return {
    version: 'v1alpha1',
    debug: false,
    machine: machine('controlplane', options),
    cluster: {
      ...cluster,
      ...(secrets.secrets.aescbcencryptionsecret && { aescbcEncryptionSecret: secrets.secrets.aescbcencryptionsecret }),
      ...(secrets.secrets.secretboxencryptionsecret && { secretboxEncryptionSecret: secrets.secrets.secretboxencryptionsecret }),
      ca: certs.k8s,
      aggregatorCA: certs.k8saggregator,
      serviceAccount: certs.k8sserviceaccount,
      apiServer: {
        image: images.apiServer,
        certSANs: [...new Set([host, ...additionalSans])],
        admissionControl: [podSecurity],
        auditPolicy,
      },
      controllerManager: { image: images.controllerManager },
      proxy: { image: images.proxy },
      scheduler: { image: images.scheduler },
      discovery,
      etcd: { ca: certs.etcd },
    },
  }
}

/** The v1alpha1 document of a worker: no key of any authority. */
export function workerDocument(options: GenerateOptions): V1Alpha1Document {
  const { discovery, ...cluster } = sharedCluster(options)
  return {
    version: 'v1alpha1',
    debug: false,
    machine: machine('worker', options),
    cluster: { ...cluster, ca: { crt: options.secrets.certs.k8s.crt, key: '' }, discovery },
  }
}
