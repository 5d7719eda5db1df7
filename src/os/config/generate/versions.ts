import { version } from '../../../../package.json'
import { kubernetesInside } from '../../../release.ts'

/** The default Kubernetes version of a new cluster. */
export const defaultKubernetesVersion = kubernetesInside

/** The installer of this release. */
export const defaultInstallImage = `ghcr.io/siderolabs/installer:v${version}`

/** References of the images that a configuration names, for a Kubernetes version. */
export function kubernetesImages(kubernetesVersion: string) {
  const tag = `v${kubernetesVersion.replace(/^v/, '')}`
  return {
    kubelet: `ghcr.io/siderolabs/kubelet:${tag}`,
    apiServer: `registry.k8s.io/kube-apiserver:${tag}`,
    controllerManager: `registry.k8s.io/kube-controller-manager:${tag}`,
    scheduler: `registry.k8s.io/kube-scheduler:${tag}`,
    proxy: `registry.k8s.io/kube-proxy:${tag}`,
  }
}
