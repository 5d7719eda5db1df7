import type { KubeObject } from '../../../kube/object.ts'

/** Lets pods request access to the machine API: a custom resource, and the service they connect to. */
export function apiAccess(): KubeObject[] {
  const roles = { type: 'array', items: { type: 'string' } }
  return [
    {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'serviceaccounts.talos.dev' },
      spec: {
        group: 'talos.dev',
        scope: 'Namespaced',
        names: {
          kind: 'ServiceAccount',
          listKind: 'ServiceAccountList',
          plural: 'serviceaccounts',
          singular: 'serviceaccount',
          shortNames: ['tsa'],
        },
        conversion: { strategy: 'None' },
        versions: [
          {
            name: 'v1alpha1',
            served: true,
            storage: true,
            schema: {
              openAPIV3Schema: {
                type: 'object',
                properties: {
                  spec: { type: 'object', properties: { roles } },
                  status: { type: 'object', properties: { failureReason: { type: 'string' } } },
                },
              },
            },
          },
        ],
      },
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'talos', namespace: 'default', labels: { component: 'apid', provider: 'talos' } },
      spec: { ports: [{ name: 'apid', port: 50000, protocol: 'TCP', targetPort: 50000 }] },
    },
  ]
}
