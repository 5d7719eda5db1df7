/** The images that a cluster uses by default, with versions to choose. */

import { defaultImages } from '../../../os/k8s/images.ts'

const tag = (reference: string) => reference.slice(reference.lastIndexOf(':') + 1)

/** What a version may be chosen of: its flag and the version inside this build. */
export const versions = {
  kubernetes: { flag: 'k8s-version', version: tag(defaultImages.kubelet) },
  etcd: { flag: 'etcd-version', version: tag(defaultImages.etcd) },
  CoreDNS: { flag: 'coredns-version', version: tag(defaultImages.coreDNS) },
  flannel: { flag: 'flannel-version', version: tag(defaultImages.flannel) },
  'kube-network-policies': { flag: 'kube-network-policies-version', version: tag(defaultImages.networkPolicies) },
} as const

/** A version for each of them. */
export type Versions = Record<keyof typeof versions, string>

const sources: [keyof typeof defaultImages, keyof Versions | undefined][] = [
  ['flannel', 'flannel'],
  ['networkPolicies', 'kube-network-policies'],
  ['coreDNS', 'CoreDNS'],
  ['etcd', 'etcd'],
  ['pause', undefined],
  ['apiServer', 'kubernetes'],
  ['controllerManager', 'kubernetes'],
  ['scheduler', 'kubernetes'],
  ['proxy', 'kubernetes'],
  ['kubelet', 'kubernetes'],
]

/** The references, with the versions inside this build where none is chosen. */
export function kubernetesImages(chosen: Partial<Versions> = {}): string[] {
  return sources.map(([image, what]) => {
    const reference = defaultImages[image]
    const version = what && chosen[what]
    return version ? `${reference.slice(0, reference.lastIndexOf(':'))}:v${version.replace(/^v/, '')}` : reference
  })
}
