import type { SpecOf } from '../../../cosi/resource.ts'
import type { KubeObject } from '../../../kube/object.ts'
import { isIPv6 } from '../../../wire/prefix.ts'
import type { BootstrapManifestsConfig } from '../resources/bootstrap-manifests-config.ts'
import {
  account,
  clusterRole,
  clusterRoleBinding,
  configMap,
  everywhere,
  fieldVariable,
  serviceAccount,
  systemNamespace,
} from './objects.ts'

const labels = { tier: 'node', 'k8s-app': 'flannel' }

/** The pod network across nodes: VXLAN between them, a bridge on each. */
export function flannel(config: SpecOf<typeof BootstrapManifestsConfig>): KubeObject[] {
  return [
    serviceAccount('flannel'),
    clusterRole('flannel', [
      { apiGroups: [''], resources: ['pods'], verbs: ['get'] },
      { apiGroups: [''], resources: ['nodes'], verbs: ['get', 'list', 'watch'] },
      { apiGroups: [''], resources: ['nodes/status'], verbs: ['patch'] },
      ...(config.flannelKubeNetworkPoliciesEnabled ? policyRules : []),
    ]),
    clusterRoleBinding('flannel', 'flannel', [account('flannel')]),
    configMap('kube-flannel-cfg', { 'net-conf.json': JSON.stringify(network(config.podCIDRs), null, 2) }, labels),
    daemonSet(config),
  ]
}

const policyRules = [
  { apiGroups: [''], resources: ['namespaces', 'pods'], verbs: ['list', 'watch'] },
  { apiGroups: ['networking.k8s.io'], resources: ['networkpolicies'], verbs: ['list', 'watch'] },
  {
    apiGroups: ['policy.networking.k8s.io'],
    resources: ['adminnetworkpolicies', 'baselineadminnetworkpolicies'],
    verbs: ['list', 'watch'],
  },
]

/** flanneld's configuration: the pod networks, and the VXLAN backend. */
export function network(podCIDRs: readonly string[]): Record<string, unknown> {
  const v4 = podCIDRs.find((cidr) => !isIPv6(cidr))
  const v6 = podCIDRs.find(isIPv6)
  return {
    ...(v4 ? { Network: v4 } : { EnableIPv4: false }),
    ...(v6 && { EnableIPv6: true, IPv6Network: v6 }),
    EnableNFTables: true,
    Backend: { Type: 'vxlan', Port: 4789 },
  }
}

function daemonSet(config: SpecOf<typeof BootstrapManifestsConfig>): KubeObject {
  const service = config.flannelKubeServiceHost
    ? [
        { name: 'KUBERNETES_SERVICE_HOST', value: config.flannelKubeServiceHost },
        { name: 'KUBERNETES_SERVICE_PORT', value: config.flannelKubeServicePort },
      ]
    : []
  const folder = (name: string, path: string, type: string) => ({ name, hostPath: { path, type } })
  return {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name: 'kube-flannel', namespace: systemNamespace, labels },
    spec: {
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          hostNetwork: true,
          priorityClassName: 'system-node-critical',
          serviceAccountName: 'flannel',
          tolerations: everywhere,
          affinity: {
            nodeAffinity: {
              requiredDuringSchedulingIgnoredDuringExecution: {
                nodeSelectorTerms: [{ matchExpressions: [{ key: 'kubernetes.io/os', operator: 'In', values: ['linux'] }] }],
              },
            },
          },
          containers: [
            {
              name: 'kube-flannel',
              image: config.flannelImage,
              command: ['/opt/bin/flanneld'],
              args: ['--ip-masq', '--kube-subnet-mgr', ...config.flannelExtraArgs],
              env: [
                fieldVariable('POD_NAME', 'metadata.name'),
                fieldVariable('POD_NAMESPACE', 'metadata.namespace'),
                fieldVariable('NODE_NAME', 'spec.nodeName'),
                fieldVariable('NODE_IP', 'status.hostIP'),
                { name: 'EVENT_QUEUE_DEPTH', value: '5000' },
                { name: 'CONT_WHEN_CACHE_NOT_READY', value: 'false' },
                ...service,
              ],
              resources: { requests: { cpu: '100m', memory: '50Mi' } },
              securityContext: { privileged: false, capabilities: { add: ['NET_ADMIN', 'NET_RAW'] } },
              volumeMounts: [
                { name: 'run', mountPath: '/run/flannel' },
                { name: 'flannel-cfg', mountPath: '/etc/kube-flannel/' },
                { name: 'xtables-lock', mountPath: '/run/xtables.lock' },
              ],
            },
            ...(config.flannelKubeNetworkPoliciesEnabled ? [policies(config.flannelKubeNetworkPoliciesImage, service)] : []),
          ],
          volumes: [
            folder('run', '/run/flannel', 'DirectoryOrCreate'),
            folder('xtables-lock', '/run/xtables.lock', 'FileOrCreate'),
            { name: 'flannel-cfg', configMap: { name: 'kube-flannel-cfg' } },
          ],
        },
      },
    },
  }
}

function policies(image: string, service: unknown[]): Record<string, unknown> {
  return {
    name: 'kube-network-policies',
    image,
    args: ['/bin/netpol', '--hostname-override=$(NODE_NAME)', '--v=2', '--nfqueue-id=98'],
    env: [fieldVariable('NODE_NAME', 'spec.nodeName'), ...service],
    resources: { requests: { cpu: '50m', memory: '50Mi' } },
    securityContext: { privileged: true, capabilities: { add: ['NET_ADMIN'] } },
  }
}
