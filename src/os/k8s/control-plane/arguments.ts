/** The command lines of the control plane's components, and the folders they read. */
import type { SpecOf } from '../../../cosi/resource.ts'
import { additive, buildArguments, denied, type Flag, overwrite } from '../arguments.ts'
import type { APIServerConfig } from '../resources/api-server-config.ts'
import type { ControllerManagerConfig } from '../resources/controller-manager-config.ts'
import type { SchedulerConfig } from '../resources/scheduler-config.ts'

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
      'root-ca-file': denied(`${secrets}/root-ca.crt`),
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
