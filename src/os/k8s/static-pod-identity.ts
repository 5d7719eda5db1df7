import { createHash } from 'node:crypto'
import type { KubeObject } from '../../kube/object.ts'

/** Which node a static pod is for, and how far that is on its way into the cluster. */
export interface PodIdentity {
  node: string
  progress: string
}

/**
 * Gives a static pod a name of its own that changes with what it is, and notes the node's progress outside of that: the
 * kubelet looks at a pod anew when its annotations change, and shows it to an API server that was not there before.
 */
export function identified(pod: KubeObject, { node, progress }: PodIdentity): KubeObject {
  const uid = createHash('sha256')
    .update(`${node}\n${JSON.stringify(pod)}`)
    .digest('hex')
    .slice(0, 32)
  return { ...pod, metadata: { ...pod.metadata, uid, annotations: { ...pod.metadata.annotations, 'ichor.dev/node': progress } } }
}
