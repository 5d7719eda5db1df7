import { createHash } from 'node:crypto'
import type { KubeObject } from '../../../kube/object.ts'
import { settingsAnnotation } from '../component/settings.ts'

/** Which node a static pod is for, and how far that is on its way into the cluster. */
export interface PodIdentity {
  node: string
  progress: string
  /** Digest of the settings it was made from. */
  settings: string
}

/** A static pod's own name, which changes with what the pod is. */
export function podUid(pod: KubeObject, node: string): string {
  return createHash('sha256')
    .update(`${node}\n${JSON.stringify(pod)}`)
    .digest('hex')
    .slice(0, 32)
}

/**
 * Gives a static pod its name, and notes the node's progress outside of what the name stands for: the kubelet looks at a
 * pod anew when its annotations change, and shows it to an API server that was not there before.
 */
export function identified(pod: KubeObject, { node, progress, settings }: PodIdentity): KubeObject {
  const annotations = { ...pod.metadata.annotations, 'ichor.dev/node': progress, [settingsAnnotation]: settings }
  return { ...pod, metadata: { ...pod.metadata, uid: podUid(pod, node), annotations } }
}
