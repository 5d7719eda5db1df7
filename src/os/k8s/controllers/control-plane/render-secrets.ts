import { type Controller, defineController, exclusive, weak } from '../../../../cosi/controller.ts'
import type { SpecOf } from '../../../../cosi/resource.ts'
import { parseKey } from '../../../../pki/key.ts'
import { EtcdRootSecret } from '../../../secrets/resources/etcd-root-secret.ts'
import { EtcdSecret } from '../../../secrets/resources/etcd-secret.ts'
import { KubernetesDynamicCert } from '../../../secrets/resources/kubernetes-dynamic-cert.ts'
import { KubernetesKeys } from '../../../secrets/resources/kubernetes-keys.ts'
import { KubernetesRootSecret } from '../../../secrets/resources/kubernetes-root-secret.ts'
import { KubernetesSecret } from '../../../secrets/resources/kubernetes-secret.ts'
import { bundle } from '../../certificate-bundle.ts'
import { controlPlane, secretsFolder } from '../../control-plane/arguments.ts'
import { encryptionConfiguration } from '../../control-plane/encryption-configuration.ts'
import { type FileWriter, pemOf, type RenderedFile, renderFiles } from '../../rendered-files.ts'
import { SecretStatus } from '../../resources/secret-status.ts'

interface Secrets {
  keys: SpecOf<typeof KubernetesKeys>
  root: SpecOf<typeof KubernetesRootSecret>
  etcdRoot: SpecOf<typeof EtcdRootSecret>
  certs: SpecOf<typeof KubernetesSecret>
  dynamic: SpecOf<typeof KubernetesDynamicCert>
  etcd: SpecOf<typeof EtcdSecret>
}

/** Writes the keys and certificates that the control plane's pods read; each component sees only its own. */
export const renderSecrets = ({ files }: { files: FileWriter }): Controller =>
  defineController({
    name: 'k8s.RenderSecretsStaticPodController',
    inputs: {
      roots: weak(KubernetesRootSecret, { id: 'k8s' }),
      keys: weak(KubernetesKeys, { id: 'k8s' }),
      etcdRoots: weak(EtcdRootSecret, { id: 'etcd' }),
      certificates: weak(KubernetesSecret, { id: 'k8s-certs' }),
      dynamics: weak(KubernetesDynamicCert, { id: 'k8s-dynamic-certs' }),
      etcds: weak(EtcdSecret, { id: 'etcd' }),
    },
    outputs: { status: exclusive(SecretStatus) },
    async reconcile({ roots, keys, etcdRoots, certificates, dynamics, etcds, status, log }) {
      const root = roots.get('k8s')
      const key = keys.get('k8s')
      const etcdRoot = etcdRoots.get('etcd')
      const certs = certificates.get('k8s-certs')
      const dynamic = dynamics.get('k8s-dynamic-certs')
      const etcd = etcds.get('etcd')
      if (!root || !key || !etcdRoot || !certs || !dynamic || !etcd) return
      const secrets = {
        root: root.spec,
        keys: key.spec,
        etcdRoot: etcdRoot.spec,
        certs: certs.spec,
        dynamic: dynamic.spec,
        etcd: etcd.spec,
      }
      for (const [component, rendered] of [
        ['kube-apiserver', apiServerSecrets(secrets)],
        ['kube-controller-manager', controllerManagerSecrets(secrets)],
        ['kube-scheduler', [{ name: 'kubeconfig', content: secrets.certs.schedulerKubeconfig }]],
      ] as const)
        await renderFiles(files, secretsFolder(component), controlPlane[component].uid, rendered)
      const version = [root, key, etcdRoot, certs, dynamic, etcd].reduce((sum, { metadata }) => sum + metadata.version, 0)
      log.debug('rendered control plane secrets', { version })
      status.put('static-pods', { ready: true, version: String(version) })
    },
  })

function apiServerSecrets({ root, keys, etcdRoot, dynamic, etcd }: Secrets): RenderedFile[] {
  const accepted = (root.acceptedCAs ?? []).map(({ crt }) => pemOf(crt))
  const issuing = pemOf(root.issuingCA?.crt)
  const pair = (name: string, { crt, key }: { crt?: string; key?: string } = {}) => [
    { name: `${name}.crt`, content: pemOf(crt) },
    { name: `${name}.key`, content: pemOf(key) },
  ]
  const serviceAccount = pemOf(root.serviceAccount?.key)
  return [
    { name: 'ca.crt', content: bundle([issuing, ...accepted]) },
    { name: 'aggregator-ca.crt', content: pemOf(root.aggregatorCA?.crt) },
    { name: 'etcd-client-ca.crt', content: pemOf(etcdRoot.etcdCA?.crt) },
    ...pair('etcd-client', etcd.etcdAPIServer),
    ...pair('apiserver', dynamic.apiServer),
    ...pair('apiserver-kubelet-client', dynamic.apiServerKubeletClient),
    ...pair('front-proxy-client', dynamic.frontProxy),
    { name: 'service-account.key', content: serviceAccount },
    { name: 'service-account.pub', content: bundle([parseKey(serviceAccount).publicPem, ...keys.acceptedServiceAccountKeys.map(pemOf)]) },
    { name: 'encryptionconfig.yaml', content: encryptionConfiguration(root, keys.secretboxKeys) },
  ]
}

function controllerManagerSecrets({ root, certs }: Secrets): RenderedFile[] {
  const accepted = (root.acceptedCAs ?? []).map(({ crt }) => pemOf(crt))
  return [
    // It does not start with a signing certificate that has others beside it.
    { name: 'ca.crt', content: pemOf(root.issuingCA?.crt) },
    // What pods trust: while an authority is replaced, also the one that signs next.
    { name: 'root-ca.crt', content: bundle([pemOf(root.issuingCA?.crt), ...accepted]) },
    { name: 'ca.key', content: pemOf(root.issuingCA?.key) },
    { name: 'kubeconfig', content: certs.controllerManagerKubeconfig },
    { name: 'service-account.key', content: pemOf(root.serviceAccount?.key) },
  ]
}
