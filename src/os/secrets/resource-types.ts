import { ApiCertificate } from './resources/api-certificate.ts'
import { CertSAN } from './resources/cert-san.ts'
import { EncryptionSalt } from './resources/encryption-salt.ts'
import { EtcdRootSecret } from './resources/etcd-root-secret.ts'
import { EtcdSecret } from './resources/etcd-secret.ts'
import { KubeletSecret } from './resources/kubelet-secret.ts'
import { KubernetesDynamicCert } from './resources/kubernetes-dynamic-cert.ts'
import { KubernetesKeys } from './resources/kubernetes-keys.ts'
import { KubernetesRootSecret } from './resources/kubernetes-root-secret.ts'
import { KubernetesSecret } from './resources/kubernetes-secret.ts'
import { MaintenanceRootSecret } from './resources/maintenance-root-secret.ts'
import { OSRootSecret } from './resources/os-root-secret.ts'
import { SiblingKeys } from './resources/sibling-keys.ts'
import { TrustdCertificate } from './resources/trustd-certificate.ts'

/** The kinds of resources of this area. */
export const resources = [
  ApiCertificate,
  CertSAN,
  EncryptionSalt,
  EtcdRootSecret,
  EtcdSecret,
  KubeletSecret,
  KubernetesDynamicCert,
  KubernetesKeys,
  KubernetesRootSecret,
  KubernetesSecret,
  MaintenanceRootSecret,
  OSRootSecret,
  SiblingKeys,
  TrustdCertificate,
]
