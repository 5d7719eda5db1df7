import type { SpecOf } from '../../../cosi/resource.ts'
import type { KubeObject } from '../../../kube/object.ts'
import { isIPv6 } from '../../../wire/prefix.ts'
import type { BootstrapManifestsConfig } from '../resources/bootstrap-manifests-config.ts'
import { account, clusterRole, clusterRoleBinding, configMap, serviceAccount, systemNamespace } from './objects.ts'

const labels = { 'k8s-app': 'kube-dns' }

/** The cluster's DNS server. */
export function coreDNS({ clusterDomain, coreDNSImage }: SpecOf<typeof BootstrapManifestsConfig>): KubeObject[] {
  return [
    serviceAccount('coredns'),
    clusterRole('system:coredns', [
      { apiGroups: [''], resources: ['endpoints', 'services', 'pods', 'namespaces'], verbs: ['list', 'watch'] },
      { apiGroups: [''], resources: ['nodes'], verbs: ['get'] },
      { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['list', 'watch'] },
    ]),
    clusterRoleBinding('system:coredns', 'system:coredns', [account('coredns')]),
    configMap('coredns', { Corefile: corefile(clusterDomain) }),
    deployment(coreDNSImage),
  ]
}

/** CoreDNS's configuration: it resolves the cluster's names itself, everything else through the node's resolvers. */
export const corefile = (domain: string): string => `.:53 {
    errors
    health {
        lameduck 5s
    }
    ready
    log . {
        class error
    }
    prometheus :9153

    kubernetes ${domain} in-addr.arpa ip6.arpa {
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
        ttl 30
    }
    forward . /etc/resolv.conf {
        max_concurrent 1000
    }
    cache 30 {
        disable success ${domain}
        disable denial ${domain}
    }
    loop
    reload
    loadbalance
}
`

function deployment(image: string): KubeObject {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'coredns', namespace: systemNamespace, labels: { ...labels, 'kubernetes.io/name': 'CoreDNS' } },
    spec: {
      replicas: 2,
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 1 } },
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          serviceAccountName: 'coredns',
          priorityClassName: 'system-cluster-critical',
          tolerations: [
            { key: 'node-role.kubernetes.io/control-plane', operator: 'Exists', effect: 'NoSchedule' },
            { key: 'node.cloudprovider.kubernetes.io/uninitialized', operator: 'Exists', effect: 'NoSchedule' },
          ],
          affinity: {
            podAntiAffinity: {
              preferredDuringSchedulingIgnoredDuringExecution: [
                {
                  weight: 100,
                  podAffinityTerm: {
                    topologyKey: 'kubernetes.io/hostname',
                    labelSelector: { matchExpressions: [{ key: 'k8s-app', operator: 'In', values: ['kube-dns'] }] },
                  },
                },
              ],
            },
          },
          dnsPolicy: 'Default',
          securityContext: { seccompProfile: { type: 'RuntimeDefault' } },
          containers: [
            {
              name: 'coredns',
              image,
              imagePullPolicy: 'IfNotPresent',
              args: ['-conf', '/etc/coredns/Corefile'],
              env: [{ name: 'GOMEMLIMIT', value: '161MiB' }],
              resources: { requests: { cpu: '100m', memory: '70Mi' }, limits: { memory: '170Mi' } },
              ports: [
                { name: 'dns', protocol: 'UDP', containerPort: 53 },
                { name: 'dns-tcp', protocol: 'TCP', containerPort: 53 },
                { name: 'metrics', protocol: 'TCP', containerPort: 9153 },
              ],
              livenessProbe: {
                httpGet: { path: '/health', port: 8080, scheme: 'HTTP' },
                initialDelaySeconds: 60,
                timeoutSeconds: 5,
                failureThreshold: 5,
              },
              // Probed often, so that a new cluster's names resolve as soon as possible.
              readinessProbe: { httpGet: { path: '/ready', port: 8181, scheme: 'HTTP' }, periodSeconds: 1 },
              securityContext: {
                allowPrivilegeEscalation: false,
                readOnlyRootFilesystem: true,
                capabilities: { add: ['NET_BIND_SERVICE'], drop: ['ALL'] },
              },
              volumeMounts: [{ name: 'config-volume', mountPath: '/etc/coredns', readOnly: true }],
            },
          ],
          volumes: [{ name: 'config-volume', configMap: { name: 'coredns', items: [{ key: 'Corefile', path: 'Corefile' }] } }],
        },
      },
    },
  }
}

/** The address under which every pod finds the DNS server. */
export function coreDNSService({ dnsServiceIP, dnsServiceIPv6 }: SpecOf<typeof BootstrapManifestsConfig>): KubeObject[] {
  const clusterIPs = [dnsServiceIP, dnsServiceIPv6].filter((address) => address !== '')
  return [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: {
        name: 'kube-dns',
        namespace: systemNamespace,
        annotations: { 'prometheus.io/port': '9153', 'prometheus.io/scrape': 'true' },
        labels: { ...labels, 'kubernetes.io/cluster-service': 'true', 'kubernetes.io/name': 'CoreDNS' },
      },
      spec: {
        selector: labels,
        clusterIP: clusterIPs[0],
        clusterIPs,
        ipFamilies: clusterIPs.map((address) => (isIPv6(address) ? 'IPv6' : 'IPv4')),
        ipFamilyPolicy: clusterIPs.length > 1 ? 'RequireDualStack' : 'SingleStack',
        ports: [
          { name: 'dns', port: 53, targetPort: 53, protocol: 'UDP' },
          { name: 'dns-tcp', port: 53, targetPort: 53, protocol: 'TCP' },
          { name: 'metrics', port: 9153, targetPort: 9153, protocol: 'TCP' },
        ],
      },
    },
  ]
}
