import * as v from 'valibot'
import { defineResource } from '../../../cosi/resource.ts'
import { isObject } from '../../../document/is-object.ts'

/** Kubernetes objects to apply when the cluster is bootstrapped. */
export const Manifest = defineResource({
  type: 'Manifests.kubernetes.talos.dev',
  namespace: 'controlplane',
  displayType: 'Manifest',
  spec: v.array(v.unknown()),
  redacted: (objects) => objects.map(withoutSecretData),
})

/** Which manifests have been applied. */
export const ManifestStatus = defineResource({
  type: 'ManifestStatuses.kubernetes.talos.dev',
  namespace: 'controlplane',
  displayType: 'ManifestStatus',
  spec: v.object({ manifestsApplied: v.optional(v.array(v.string()), []) }),
})

/** Shows only the key names of a Secret; the bootstrap token would make its reader a node. */
function withoutSecretData(object: unknown): unknown {
  if (!isObject(object)) return object
  if (Array.isArray(object.items)) return { ...object, items: object.items.map(withoutSecretData) }
  if (object.kind !== 'Secret') return object
  const { data, stringData, metadata, ...rest } = object
  return {
    ...rest,
    ...(isObject(metadata) && { metadata: withoutLastApplied(metadata) }),
    ...(isObject(data) && { data: emptied(data) }),
    ...(isObject(stringData) && { stringData: emptied(stringData) }),
  }
}

/** `kubectl apply` keeps the whole object in this annotation. */
function withoutLastApplied(metadata: Record<string, unknown>): Record<string, unknown> {
  if (!isObject(metadata.annotations)) return metadata
  const { 'kubectl.kubernetes.io/last-applied-configuration': _, ...annotations } = metadata.annotations
  return { ...metadata, annotations }
}

const emptied = (data: Record<string, unknown>) => Object.fromEntries(Object.keys(data).map((key) => [key, '']))
