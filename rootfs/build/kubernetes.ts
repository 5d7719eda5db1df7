/**
 * The releases of Kubernetes that can be built: the newest patch of each of the last three minors, with modules pinned in a folder
 * each. CoreDNS is linked with the client library of Kubernetes, so an older minor comes with the newest CoreDNS that accepts it.
 */
import { UsageError } from './failure.ts'

/** A release of Kubernetes. */
export interface KubernetesRelease {
  /** As in `1.36.3`. */
  version: string
  /** Folder with its go.mod and go.sum, beside this file's parent. */
  module: string
  /** The release of CoreDNS beside it, as in `1.14.7`. */
  coredns: string
}

/** What is built unless another is requested, then the older ones. */
export const kubernetesReleases: readonly [KubernetesRelease, ...KubernetesRelease[]] = [
  { version: '1.36.3', module: 'kube', coredns: '1.14.7' },
  { version: '1.35.4', module: 'kube-1.35', coredns: '1.14.7' },
  { version: '1.34.4', module: 'kube-1.34', coredns: '1.14.1' },
]

/** The release that a flag requests, as `v1.35.4` or `1.35.4`; the default without one. */
export function kubernetesRelease(requested: string | undefined): KubernetesRelease {
  if (requested === undefined) return kubernetesReleases[0]
  const found = kubernetesReleases.find(({ version }) => version === requested.replace(/^v/, ''))
  if (found) return found
  throw new UsageError(`--kubernetes "${requested}": must be one of ${kubernetesReleases.map(({ version }) => `v${version}`).join(', ')}`)
}
