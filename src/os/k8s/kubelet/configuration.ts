import type { SpecOf } from '../../../cosi/resource.ts'
import { isObject } from '../../../document/is-object.ts'
import type { Mode } from '../../kernel.ts'
import type { Taint } from '../node/patch.ts'
import type { KubeletConfig } from '../resources/kubelet.ts'
import { shutdownDefaults } from './shutdown-time.ts'

/** The inputs of the kubelet's configuration file beside its resource. */
export interface KubeletContext {
  mode: Mode
  controlPlane: boolean
  /** The taints that the node registers with. */
  taints: readonly Taint[]
  /** The lowest OOM score this node may set; setting a lower one fails. */
  oomFloor?: number | undefined
  /** Bytes of memory that the kubelet sees and the node may not use. */
  hiddenMemory?: number
}

/** Processes and threads of one pod: far above normal use, far below what would exhaust a node. */
const podPidsLimit = 8192

/** The top level keys an operator may not set in `extraConfig`: the system depends on them. */
export const reservedKubeletKeys = [
  'apiVersion',
  'authentication',
  'authorization',
  'cgroupRoot',
  'kind',
  'kubeletCgroups',
  'port',
  'protectKernelDefaults',
  'resolvConf',
  'rotateCertificates',
  'systemCgroups',
  'staticPodPath',
  'seccompDefault',
] as const

/** The kubelet's configuration file as an object; durations are in Kubernetes' format. */
export function kubeletConfiguration(
  config: SpecOf<typeof KubeletConfig>,
  { mode, controlPlane, taints, oomFloor = -1000, hiddenMemory = 0 }: KubeletContext,
): Record<string, unknown> {
  const registration = config.skipNodeRegistration
    ? { authentication: { webhook: { enabled: false }, anonymous: { enabled: false } }, authorization: { mode: 'AlwaysAllow' } }
    : {
        authentication: {
          x509: { clientCAFile: '/etc/kubernetes/pki/ca.crt' },
          webhook: { enabled: true },
          anonymous: { enabled: false },
        },
        authorization: { mode: 'Webhook' },
      }
  const own = {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    staticPodPath: config.disableManifestsDirectory ? '' : '/etc/kubernetes/manifests',
    staticPodURL: config.staticPodListURL,
    // The list is requested from a loopback server, which answers when it has changed.
    httpCheckFrequency: '100ms',
    address: '0.0.0.0',
    port: 10250,
    tlsMinVersion: 'VersionTLS13',
    rotateCertificates: true,
    ...registration,
    ...(taints.length > 0 && {
      registerWithTaints: taints.map(({ key, value, effect }) => ({ key, ...(value && { value }), effect })),
    }),
    oomScoreAdj: Math.max(-450, oomFloor),
    clusterDomain: config.clusterDomain,
    clusterDNS: config.clusterDNS,
    containerRuntimeEndpoint: 'unix:///run/containerd/containerd.sock',
    streamingConnectionIdleTimeout: '5m0s',
    cgroupDriver: 'cgroupfs',
    cgroupRoot: '/',
    systemCgroups: '/system',
    kubeletCgroups: '/podruntime/kubelet',
    protectKernelDefaults: mode === 'metal',
    // Containers use their host's cgroups, which may still be version 1.
    ...(mode === 'container' && { failCgroupV1: false }),
    serializeImagePulls: false,
    failSwapOn: false,
    podPidsLimit,
    seccompDefault: config.defaultRuntimeSeccompEnabled,
    resolvConf: '/system/resolved/resolv.conf',
    ...(mode === 'container' && { evictionHard: containerEvictionHard(hiddenMemory), imageGCHighThresholdPercent: 100 }),
    ...shutdownDefaults(config.extraConfig),
    systemReserved: { cpu: '50m', pid: '100', 'ephemeral-storage': '256Mi', memory: controlPlane ? '512Mi' : '384Mi' },
    logging: { format: 'json' },
    ...(config.enableFSQuotaMonitoring && { featureGates: { LocalStorageCapacityIsolationFSQuotaMonitoring: true } }),
  }
  return merged(own, config.extraConfig ?? {}, reservedKubeletKeys)
}

/**
 * Thresholds for a node in a container, which shares its host's memory and disk. The memory that the node may not use is added to the
 * kubelet's own threshold for memory: it is not allocatable then, and pods are evicted before the limit of the node is reached. What is
 * free on the disk is compared with amounts, as how much of a disk others have filled is no fault of the node; unused images are
 * deleted at the same amounts, and not by the part of the disk that is in use.
 */
const containerEvictionHard = (hiddenMemory: number): Record<string, string> => ({
  'memory.available': `${100 * 1024 + Math.ceil(hiddenMemory / 1024)}Ki`,
  'nodefs.available': '1Gi',
  'nodefs.inodesFree': '1%',
  'imagefs.available': '1Gi',
  'imagefs.inodesFree': '1%',
})

function merged(
  own: Record<string, unknown>,
  extra: Readonly<Record<string, unknown>>,
  reserved: readonly string[] = [],
): Record<string, unknown> {
  const out = { ...own }
  for (const [key, value] of Object.entries(extra)) {
    if (reserved.includes(key)) throw new Error(`kubelet extraConfig "${key}" may not be set: remove it from machine.kubelet.extraConfig`)
    const present = out[key]
    out[key] = isObject(present) && isObject(value) ? merged(present, value) : value
  }
  return out
}
