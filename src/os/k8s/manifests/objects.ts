import type { KubeObject } from '../../../kube/object.ts'

/** The namespace of the system's objects. */
export const systemNamespace = 'kube-system'

/** A cluster role. */
export const clusterRole = (name: string, rules: unknown[]): KubeObject => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'ClusterRole',
  metadata: { name },
  rules,
})

/** A cluster role binding. */
export const clusterRoleBinding = (name: string, role: string, subjects: unknown[]): KubeObject => ({
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'ClusterRoleBinding',
  metadata: { name },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
  subjects,
})

/** A group of users as a subject. */
export const group = (name: string) => ({ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name })

/** A service account of the system as a subject. */
export const account = (name: string) => ({ kind: 'ServiceAccount', name, namespace: systemNamespace })

/** A service account of the system. */
export const serviceAccount = (name: string): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ServiceAccount',
  metadata: { name, namespace: systemNamespace },
})

/** A config map of the system. */
export const configMap = (name: string, data: Record<string, string>, labels: Record<string, string> = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: systemNamespace, ...(Object.keys(labels).length > 0 && { labels }) },
  data,
})

/** Tolerates all taints. */
export const everywhere = [
  { effect: 'NoSchedule', operator: 'Exists' },
  { effect: 'NoExecute', operator: 'Exists' },
]

/** An environment variable with the value of a field of the pod. */
export const fieldVariable = (name: string, fieldPath: string) => ({ name, valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath } } })
