import type { KubeObject } from '../../../kube/object.ts'
import { clusterRole, clusterRoleBinding, group, systemNamespace } from './objects.ts'

/** The bootstrap token, and the groups it authenticates. */
export function bootstrapToken(id: string, secret: string): KubeObject[] {
  const text = (value: string) => Buffer.from(value).toString('base64')
  return [
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: `bootstrap-token-${id}`, namespace: systemNamespace },
      type: 'bootstrap.kubernetes.io/token',
      data: {
        'token-id': text(id),
        'token-secret': text(secret),
        'usage-bootstrap-authentication': text('true'),
        'auth-extra-groups': text('system:bootstrappers:nodes'),
      },
    },
  ]
}

const bootstrappers = group('system:bootstrappers:nodes')
const nodes = group('system:nodes')
const approval = 'system:certificates.k8s.io:certificatesigningrequests'

/** Nodes may request certificates. */
export const nodesMayAsk = (): KubeObject[] => [
  clusterRoleBinding('system-bootstrap-node-bootstrapper', 'system:node-bootstrapper', [bootstrappers, nodes]),
]

/** A node's first certificate is approved automatically. */
export const firstIsApproved = (): KubeObject[] => [
  clusterRoleBinding('system-bootstrap-approve-node-client-csr', `${approval}:nodeclient`, [bootstrappers]),
]

/** Its renewals are, too. */
export const renewalIsApproved = (): KubeObject[] => [
  clusterRoleBinding('system-bootstrap-node-renewal', `${approval}:selfnodeclient`, [nodes]),
]

/** Nodes may read the endpoints of the API servers. */
export const nodesMaySeeEndpoints = (): KubeObject[] => [
  clusterRole('system:talos-nodes', [{ apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['get', 'list', 'watch'] }]),
  clusterRoleBinding('system:talos-nodes', 'system:talos-nodes', [nodes]),
]
