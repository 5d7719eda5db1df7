import { type Controller, defineController, exclusive, weak } from '../../../cosi/controller.ts'
import type { SpecOf } from '../../../cosi/resource.ts'
import { buildKubeconfig, formatKubeconfig } from '../../../kube/kubeconfig.ts'
import { newCertificate, type PemPair, year } from '../../../pki/certificate.ts'
import { NetworkStatus } from '../../network/resources/network-status.ts'
import { TimeStatus } from '../../time/resources/time-status.ts'
import { joinUrl, type UrlParts } from '../../url.ts'
import { decoded, type EncodedPair, Issued } from '../issued.ts'
import { CertSAN } from '../resources/cert-san.ts'
import { KubernetesDynamicCert } from '../resources/kubernetes-dynamic-cert.ts'
import { KubernetesRootSecret } from '../resources/kubernetes-root-secret.ts'
import { KubernetesSecret } from '../resources/kubernetes-secret.ts'

type Root = SpecOf<typeof KubernetesRootSecret>

/** Kubeconfigs of the control plane components and of this node's own access to the cluster. */
export const issueKubeconfigs = (): Controller => {
  let issued: Issued | undefined
  return defineController({
    name: 'secrets.KubernetesController',
    inputs: { root: weak(KubernetesRootSecret), time: weak(TimeStatus) },
    outputs: { secret: exclusive(KubernetesSecret) },
    async reconcile({ root, time, secret, now, wakeAt }) {
      issued ??= new Issued(now)
      const certificates = issued
      const k8s = root.get('k8s')?.spec
      if (!k8s?.issuingCA || !k8s.endpoint || !k8s.local_endpoint || !time.get('node')?.spec.synced) return
      const { local_endpoint: server } = k8s
      const ca = decoded(k8s.issuingCA)
      const client = (commonName: string, organization: string) =>
        certificates.pair(commonName, k8s.issuingCA, () =>
          newCertificate({ ca, subject: { commonName, organizations: [organization] }, usage: ['clientAuth'], lifetime: year, now: now() }),
        )
      const component = async (name: string) => kubeconfig(k8s, server, name, await client(`system:${name}`, `system:${name}`))
      secret.put('k8s-certs', {
        schedulerKubeconfig: await component('kube-scheduler'),
        controllerManagerKubeconfig: await component('kube-controller-manager'),
        localhostAdminKubeconfig: kubeconfig(k8s, k8s.local_endpoint, 'admin', await client('talos:admin', 'system:masters')),
        adminKubeconfig: kubeconfig(k8s, k8s.endpoint, 'admin', await client('admin', 'system:masters')),
      })
      wakeAt(issued.nextRenewal())
    },
  })
}

/** Certificates of the API server, reissued when the node's addresses change. */
export const issueApiServerCertificates = (): Controller => {
  let issued: Issued | undefined
  return defineController({
    name: 'secrets.KubernetesDynamicCertsController',
    inputs: { network: weak(NetworkStatus), root: weak(KubernetesRootSecret), time: weak(TimeStatus), sans: weak(CertSAN) },
    outputs: { certificates: exclusive(KubernetesDynamicCert) },
    async reconcile({ network, root, time, sans, certificates, now, wakeAt }) {
      issued ??= new Issued(now)
      const k8s = root.get('k8s')?.spec
      const names = sans.get('k8s')?.spec
      const net = network.get('status')?.spec
      if (!k8s?.issuingCA || !k8s.aggregatorCA || !names || !net?.addressReady || !time.get('node')?.spec.synced) return
      const ca = decoded(k8s.issuingCA)
      const aggregator = decoded(k8s.aggregatorCA)
      const common = { lifetime: year, now: now() }
      certificates.put('k8s-dynamic-certs', {
        apiServer: await issued.pair('server', [k8s.issuingCA, names], () =>
          newCertificate({
            ...common,
            ca,
            subject: { commonName: 'kube-apiserver', organizations: ['kube-master'] },
            sans: { dns: names.dnsNames, ips: names.ips },
            usage: ['serverAuth'],
          }),
        ),
        apiServerKubeletClient: await issued.pair('kubelet-client', k8s.issuingCA, () =>
          newCertificate({
            ...common,
            ca,
            subject: { commonName: 'apiserver-kubelet-client', organizations: ['system:masters'] },
            usage: ['clientAuth'],
          }),
        ),
        frontProxy: await issued.pair('front-proxy', k8s.aggregatorCA, () =>
          newCertificate({ ...common, ca: aggregator, subject: { commonName: 'front-proxy-client' }, usage: ['clientAuth'] }),
        ),
      })
      wakeAt(issued.nextRenewal())
    },
  })
}

function kubeconfig({ name, acceptedCAs = [] }: Root, endpoint: UrlParts, user: string, pair: EncodedPair): string {
  const { crt, key }: PemPair = decoded(pair)
  const ca = acceptedCAs.map(({ crt }) => Buffer.from(crt, 'base64').toString('utf8')).join('')
  return formatKubeconfig(
    buildKubeconfig({
      cluster: name,
      server: joinUrl(endpoint),
      ca,
      user: `${user}@${name}`,
      context: `${user}@${name}`,
      namespace: 'default',
      cert: crt,
      key,
    }),
  )
}
