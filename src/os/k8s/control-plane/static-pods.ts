/** The three pods of the control plane as Kubernetes objects. */

import type { SpecOf } from '../../../cosi/resource.ts'
import type { KubeObject } from '../../../kube/object.ts'
import { additive, buildArguments, denied, type Flag, overwrite } from '../arguments.ts'
import type { APIServerConfig } from '../resources/api-server-config.ts'
import type { ControllerManagerConfig } from '../resources/controller-manager-config.ts'
import type { SchedulerConfig } from '../resources/scheduler-config.ts'

/** Versions that a pod carries, so that it is restarted when its inputs change. */
export interface PodVersions {
  secrets: string
  config: string
  configFiles?: string
}

/** A component's user and group, and the folders it reads. */
export const controlPlane = {
  'kube-apiserver': { uid: 65534, cpu: '200m', memory: '512Mi' },
  'kube-controller-manager': { uid: 65535, cpu: '50m', memory: '256Mi' },
  'kube-scheduler': { uid: 65536, cpu: '10m', memory: '64Mi' },
} as const

/** One of the control plane's components. */
export type Component = keyof typeof controlPlane

/** Where a component's keys and certificates are kept. */
export const secretsFolder = (component: Component): string => `/system/secrets/kubernetes/${component}`

/** Where a component's configuration files are kept. */
export const configFolder = (component: Component): string => `/system/config/kubernetes/${component}`

/** Where the API server writes its audit log. */
export const auditFolder = '/var/log/audit/kube'

const ciphers = [
  'TLS_AES_128_GCM_SHA256',
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256',
  'TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384',
  'TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305',
  'TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256',
  'TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256',
  'TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384',
  'TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305',
  'TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256',
]

/** kube-apiserver's command line. */
export function apiServerArguments(config: SpecOf<typeof APIServerConfig>): string[] {
  const secrets = secretsFolder('kube-apiserver')
  const files = configFolder('kube-apiserver')
  const byFlags = Object.keys(config.extraArgs).some((name) => name === 'authorization-mode' || name.startsWith('authorization-webhook-'))
  const authorization: Record<string, Flag> = byFlags
    ? { 'authorization-mode': additive('Node,RBAC') }
    : { 'authorization-config': denied(`${files}/authorization-config.yaml`) }
  return buildArguments(
    'kube-apiserver',
    {
      'admission-control-config-file': overwrite(`${files}/admission-control-config.yaml`),
      'advertise-address': overwrite(config.advertisedAddress || undefined),
      'allow-privileged': overwrite('true'),
      'anonymous-auth': overwrite('false'),
      'api-audiences': overwrite(config.controlPlaneEndpoint),
      'audit-log-maxage': overwrite('30'),
      'audit-log-maxbackup': overwrite('10'),
      'audit-log-maxsize': overwrite('100'),
      'audit-log-path': overwrite(`${auditFolder}/kube-apiserver.log`),
      'audit-policy-file': overwrite(`${files}/auditpolicy.yaml`),
      'bind-address': overwrite('0.0.0.0'),
      'client-ca-file': denied(`${secrets}/ca.crt`),
      'enable-admission-plugins': additive('NodeRestriction'),
      'enable-bootstrap-token-auth': overwrite('true'),
      'encryption-provider-config': denied(`${secrets}/encryptionconfig.yaml`),
      'etcd-cafile': denied(`${secrets}/etcd-client-ca.crt`),
      'etcd-certfile': denied(`${secrets}/etcd-client.crt`),
      'etcd-keyfile': denied(`${secrets}/etcd-client.key`),
      'etcd-servers': denied(config.etcdServers),
      'feature-gates': additive(),
      'kubelet-client-certificate': denied(`${secrets}/apiserver-kubelet-client.crt`),
      'kubelet-client-key': denied(`${secrets}/apiserver-kubelet-client.key`),
      'kubelet-preferred-address-types': overwrite('InternalIP,ExternalIP,Hostname'),
      profiling: overwrite('false'),
      'proxy-client-cert-file': denied(`${secrets}/front-proxy-client.crt`),
      'proxy-client-key-file': denied(`${secrets}/front-proxy-client.key`),
      'requestheader-allowed-names': overwrite('front-proxy-client'),
      'requestheader-client-ca-file': denied(`${secrets}/aggregator-ca.crt`),
      'requestheader-extra-headers-prefix': overwrite('X-Remote-Extra-'),
      'requestheader-group-headers': overwrite('X-Remote-Group'),
      'requestheader-username-headers': overwrite('X-Remote-User'),
      'secure-port': overwrite(String(config.localPort)),
      // Tokens live as long as requested, not a year: clients have reloaded theirs for years.
      'service-account-extend-token-expiration': overwrite('false'),
      'service-account-issuer': overwrite(config.controlPlaneEndpoint),
      'service-account-key-file': denied(`${secrets}/service-account.pub`),
      'service-account-signing-key-file': denied(`${secrets}/service-account.key`),
      'service-cluster-ip-range': overwrite(config.serviceCIDR),
      'tls-cert-file': denied(`${secrets}/apiserver.crt`),
      'tls-cipher-suites': additive(ciphers),
      'tls-min-version': overwrite('VersionTLS12'),
      'tls-private-key-file': denied(`${secrets}/apiserver.key`),
      ...authorization,
    },
    config.extraArgs,
  )
}

/** kube-controller-manager's command line. */
export function controllerManagerArguments(config: SpecOf<typeof ControllerManagerConfig>): string[] {
  const secrets = secretsFolder('kube-controller-manager')
  const flags = buildArguments(
    'kube-controller-manager',
    {
      'allocate-node-cidrs': overwrite('true'),
      'authentication-kubeconfig': denied(`${secrets}/kubeconfig`),
      'authorization-kubeconfig': denied(`${secrets}/kubeconfig`),
      'bind-address': overwrite('127.0.0.1'),
      'cloud-provider': overwrite(config.cloudProvider || undefined),
      'cluster-cidr': overwrite(config.podCIDRs),
      'cluster-signing-cert-file': denied(`${secrets}/ca.crt`),
      'cluster-signing-key-file': denied(`${secrets}/ca.key`),
      'configure-cloud-routes': overwrite('false'),
      controllers: additive('*,tokencleaner'),
      // It starts by creating an account for each of its controllers: at the default rate that alone takes five seconds.
      'kube-api-burst': overwrite('200'),
      'kube-api-qps': overwrite('100'),
      kubeconfig: overwrite(`${secrets}/kubeconfig`),
      'leader-elect': overwrite('true'),
      profiling: overwrite('false'),
      'root-ca-file': denied(`${secrets}/ca.crt`),
      'service-account-private-key-file': denied(`${secrets}/service-account.key`),
      'service-cluster-ip-range': additive(config.serviceCIDRs),
      'terminated-pod-gc-threshold': overwrite('12500'),
      'tls-min-version': overwrite('VersionTLS13'),
    },
    config.extraArgs,
  )
  return [...flags, '--use-service-account-credentials']
}

/** kube-scheduler's command line. */
export function schedulerArguments(config: SpecOf<typeof SchedulerConfig>): string[] {
  const secrets = secretsFolder('kube-scheduler')
  return buildArguments(
    'kube-scheduler',
    {
      'authentication-kubeconfig': denied(`${secrets}/kubeconfig`),
      'authentication-tolerate-lookup-failure': overwrite('false'),
      'authorization-kubeconfig': denied(`${secrets}/kubeconfig`),
      'bind-address': overwrite('127.0.0.1'),
      config: denied(`${configFolder('kube-scheduler')}/scheduler-config.yaml`),
      kubeconfig: denied(),
      'leader-elect': overwrite('true'),
      profiling: overwrite('false'),
      'tls-min-version': overwrite('VersionTLS13'),
    },
    config.extraArgs,
  )
}

/** kube-apiserver's pod. */
export function apiServerPod(config: SpecOf<typeof APIServerConfig>, versions: PodVersions): KubeObject {
  return pod('kube-apiserver', config, apiServerArguments(config), versions, {
    config: true,
    volumes: [{ name: 'audit', hostPath: auditFolder, mountPath: auditFolder, readonly: false }],
    capabilities: ['NET_BIND_SERVICE'],
    // The server waits for its watchers, which wait for it: everything else is done long before.
    gracePeriod: 10,
  })
}

/**
 * Probed often, so that a component becomes ready without delay; a minute to start. Not at once: the first node of a new cluster
 * becomes ready a second later, and readiness on a node that is not ready is reset for up to ten seconds.
 */
const startup = { initialDelaySeconds: 2, periodSeconds: 1, failureThreshold: 60 }

/** kube-controller-manager's pod. */
export function controllerManagerPod(config: SpecOf<typeof ControllerManagerConfig>, versions: PodVersions): KubeObject {
  const healthz = probe(10257, '/healthz')
  return pod('kube-controller-manager', config, controllerManagerArguments(config), versions, {
    probes: { startupProbe: { ...healthz, ...startup }, livenessProbe: { ...healthz, timeoutSeconds: 15 } },
  })
}

/** kube-scheduler's pod. */
export function schedulerPod(config: SpecOf<typeof SchedulerConfig>, versions: PodVersions): KubeObject {
  const separate = minorVersion(config.image) >= 31
  const live = probe(10259, separate ? '/livez' : '/healthz')
  const ready = probe(10259, separate ? '/readyz' : '/healthz')
  return pod('kube-scheduler', config, schedulerArguments(config), versions, {
    config: true,
    probes: {
      startupProbe: { ...live, ...startup },
      livenessProbe: { ...live, timeoutSeconds: 15 },
      readinessProbe: { ...ready, timeoutSeconds: 15, periodSeconds: 2 },
    },
  })
}

interface Volume {
  name: string
  hostPath: string
  mountPath: string
  readonly: boolean
}

interface PodDetails {
  config?: boolean
  volumes?: Volume[]
  capabilities?: string[]
  /** Termination grace period in seconds; thirty if not given. */
  gracePeriod?: number
  probes?: Record<string, unknown>
}

type ComponentSpec = Pick<SpecOf<typeof ControllerManagerConfig>, 'image' | 'extraVolumes' | 'environmentVariables' | 'resources'>

function pod(component: Component, spec: ComponentSpec, args: string[], versions: PodVersions, details: PodDetails): KubeObject {
  const { uid, cpu, memory } = controlPlane[component]
  const own: Volume[] = [
    { name: 'secrets', hostPath: secretsFolder(component), mountPath: secretsFolder(component), readonly: true },
    ...(details.config ? [{ name: 'config', hostPath: configFolder(component), mountPath: configFolder(component), readonly: true }] : []),
    ...(details.volumes ?? []),
  ]
  const volumes = [...own, ...spec.extraVolumes]
  const requests = { ...spec.resources.requests, cpu: spec.resources.requests.cpu || cpu, memory: spec.resources.requests.memory || memory }
  const limits = spec.resources.limits
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: component,
      namespace: 'kube-system',
      annotations: {
        'talos.dev/secrets-version': versions.secrets,
        'talos.dev/config-version': versions.config,
        ...(versions.configFiles !== undefined && { 'talos.dev/config-file-version': versions.configFiles }),
      },
      labels: {
        tier: 'control-plane',
        'k8s-app': component,
        component,
        'app.kubernetes.io/name': component,
        'app.kubernetes.io/version': labelValue(spec.image),
        'app.kubernetes.io/component': 'control-plane',
        'app.kubernetes.io/managed-by': 'Talos',
      },
    },
    spec: {
      priority: 2000000000,
      priorityClassName: 'system-cluster-critical',
      hostNetwork: true,
      ...(details.gracePeriod && { terminationGracePeriodSeconds: details.gracePeriod }),
      securityContext: { runAsNonRoot: true, runAsUser: uid, runAsGroup: uid, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [
        {
          name: component,
          image: spec.image,
          command: [component, ...args],
          env: [
            ...Object.entries(spec.environmentVariables)
              .sort(([a], [b]) => (a < b ? -1 : 1))
              // The kubelet would expand `$(NAME)`: a doubled dollar is a literal one.
              .map(([name, value]) => ({ name, value: value.replaceAll('$', '$$$$') })),
            { name: 'POD_IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } },
            ...memoryLimit(limits.memory),
          ],
          volumeMounts: volumes.map(({ name, mountPath, readonly }) => ({ name, mountPath, ...(readonly && { readOnly: true }) })),
          resources: { requests, ...(Object.keys(limits).length > 0 && { limits }) },
          ...details.probes,
          // The kubelet then reports why a component exited, also when its log cannot be reached.
          terminationMessagePolicy: 'FallbackToLogsOnError',
          securityContext: {
            allowPrivilegeEscalation: false,
            capabilities: { drop: ['ALL'], ...(details.capabilities && { add: details.capabilities }) },
            seccompProfile: { type: 'RuntimeDefault' },
          },
        },
      ],
      volumes: volumes.map(({ name, hostPath }) => ({ name, hostPath: { path: hostPath } })),
    },
  }
}

function probe(port: number, path: string): Record<string, unknown> {
  return { httpGet: { path, host: 'localhost', port, scheme: 'HTTPS' } }
}

function minorVersion(image: string): number {
  return Number(image.match(/:v?1\.(\d+)/)?.[1] ?? 99)
}

function labelValue(image: string): string {
  const tag = image.split('@')[0]?.match(/:([^:/]+)$/)?.[1] ?? ''
  return tag.replace(/[^A-Za-z0-9._-]/g, '-').slice(0, 63)
}

/** Go's soft memory limit, a little below the pod's hard one. */
function memoryLimit(limit: string | undefined): { name: string; value: string }[] {
  const [, digits, unit = ''] = limit?.match(/^(\d+(?:\.\d+)?)([KMGTP]i?|k|m)?$/) ?? []
  const factor = factors[unit]
  if (!digits || factor === undefined) return []
  return [{ name: 'GOMEMLIMIT', value: String(Math.floor(Number(digits) * factor * 0.95)) }]
}

const factors: Record<string, number> = {
  '': 1,
  m: 1e-3,
  k: 1e3,
  K: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
}
