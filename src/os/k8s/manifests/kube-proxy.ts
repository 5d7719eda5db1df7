import type { SpecOf } from '../../../cosi/resource.ts'
import type { KubeObject } from '../../../kube/object.ts'
import type { BootstrapManifestsConfig } from '../resources/bootstrap-manifests-config.ts'
import { account, clusterRoleBinding, everywhere, fieldVariable, serviceAccount, systemNamespace } from './objects.ts'

const labels = { tier: 'node', 'k8s-app': 'kube-proxy' }

/** kube-proxy, which makes services reachable on every node. */
export function kubeProxy(config: SpecOf<typeof BootstrapManifestsConfig>): KubeObject[] {
  return [serviceAccount('kube-proxy'), clusterRoleBinding('kube-proxy', 'system:node-proxier', [account('kube-proxy')]), daemonSet(config)]
}

function daemonSet({ proxyImage, proxyArgs }: SpecOf<typeof BootstrapManifestsConfig>): KubeObject {
  return {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name: 'kube-proxy', namespace: systemNamespace, labels },
    spec: {
      selector: { matchLabels: labels },
      updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 1 } },
      template: {
        metadata: { labels },
        spec: {
          hostNetwork: true,
          priorityClassName: 'system-cluster-critical',
          serviceAccountName: 'kube-proxy',
          tolerations: everywhere,
          containers: [
            {
              name: 'kube-proxy',
              image: proxyImage,
              command: ['kube-proxy', ...proxyArgs],
              env: [fieldVariable('NODE_NAME', 'spec.nodeName'), fieldVariable('POD_IP', 'status.podIP')],
              securityContext: { privileged: true },
              volumeMounts: [
                { name: 'kubeconfig', mountPath: '/etc/kubernetes', readOnly: true },
                { name: 'xtables-lock', mountPath: '/run/xtables.lock' },
              ],
            },
          ],
          volumes: [
            { name: 'kubeconfig', configMap: { name: 'kubeconfig-in-cluster' } },
            { name: 'xtables-lock', hostPath: { path: '/run/xtables.lock', type: 'FileOrCreate' } },
          ],
        },
      },
    },
  }
}

/** How system pods reach the API without services, which depend on one of them. */
export function kubeconfigInCluster(server: string): string {
  const folder = '/var/run/secrets/kubernetes.io/serviceaccount'
  return `apiVersion: v1
kind: Config
clusters:
  - name: local
    cluster:
      server: ${server}
      certificate-authority: ${folder}/ca.crt
users:
  - name: service-account
    user:
      tokenFile: ${folder}/token
contexts:
  - name: service-account@local
    context:
      cluster: local
      user: service-account
current-context: service-account@local
`
}
