import type { Store } from '../../../cosi/store.ts'
import { accessOf, parseKubeconfig } from '../../../kube/kubeconfig.ts'
import type { KubeAccess } from '../../../kube/transport.ts'
import { KubernetesSecret } from '../../secrets/resources/kubernetes-secret.ts'
import { type KubeletFileSystem, kubeletAccess } from '../kubelet/files.ts'

/** The strongest access to Kubernetes that this node has: a control plane's own, else its kubelet's; undefined before it has any. */
export function nodeAccess(store: Pick<Store, 'get'>, files: Pick<KubeletFileSystem, 'readTextIfThere'>): KubeAccess | undefined {
  const admin = store.get(KubernetesSecret, 'k8s-certs')?.spec.localhostAdminKubeconfig
  return admin ? accessOf(parseKubeconfig(admin)) : kubeletAccess(files)
}
