import { createHash } from 'node:crypto'
import type { KubeObject } from '../../../kube/object.ts'
import { settingsAnnotation } from '../component/settings.ts'

/** The node of a static pod, and its progress in joining the cluster. */
export interface PodIdentity {
  node: string
  progress: string
  /** Digest of the settings it was made from. */
  settings: string
}

/** A static pod's uid, which changes with its content. */
export function podUid(pod: KubeObject, node: string): string {
  return createHash('sha256')
    .update(`${node}\n${JSON.stringify(pod)}`)
    .digest('hex')
    .slice(0, 32)
}

/**
 * Sets a static pod's uid, and records the node's progress in annotations outside of the uid: the kubelet processes a pod again
 * when its annotations change, and reports it to an API server that was not there before.
 */
export function identified(pod: KubeObject, { node, progress, settings }: PodIdentity): KubeObject {
  const annotations = { ...pod.metadata.annotations, 'ichor.dev/node': progress, [settingsAnnotation]: settings }
  return { ...pod, metadata: { ...pod.metadata, uid: podUid(pod, node), annotations } }
}
