import type { KubeObject } from '../../../kube/object.ts'

/** The kind of object that requests access to the machine API. Its controllers make everything else. */
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
  ]
}
