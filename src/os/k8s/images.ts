import { coreDNSInside, kubernetesInside } from '../../release.ts'

/** The Kubernetes release inside this build. */
export const kubernetesVersion = kubernetesInside

/** The etcd release inside this build. */
export const etcdVersion = '3.6.16'

/** The default images; all of them are in the root file system. */
export const defaultImages = {
  apiServer: `registry.k8s.io/kube-apiserver:v${kubernetesVersion}`,
  controllerManager: `registry.k8s.io/kube-controller-manager:v${kubernetesVersion}`,
  scheduler: `registry.k8s.io/kube-scheduler:v${kubernetesVersion}`,
  proxy: `registry.k8s.io/kube-proxy:v${kubernetesVersion}`,
  kubelet: `ghcr.io/siderolabs/kubelet:v${kubernetesVersion}`,
  etcd: `registry.k8s.io/etcd:v${etcdVersion}`,
  coreDNS: `registry.k8s.io/coredns/coredns:v${coreDNSInside}`,
  flannel: 'ghcr.io/siderolabs/flannel:v0.28.4',
  networkPolicies: 'registry.k8s.io/networking/kube-network-policies:v1.1.0',
  pause: 'registry.k8s.io/pause:3.10.1',
} as const
