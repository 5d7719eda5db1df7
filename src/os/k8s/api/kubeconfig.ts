import { buildKubeconfig, formatKubeconfig } from '../../../kube/kubeconfig.ts'
import { newCertificate, year } from '../../../pki/certificate.ts'
import { serverStream } from '../../../rpc/server/method.ts'
import { RpcError } from '../../../rpc/status.ts'
import { milliseconds } from '../../../wire/duration.ts'
import { writeTar } from '../../../wire/tar/write.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import { KubernetesRootSecret } from '../../secrets/resources/kubernetes-root-secret.ts'
import { joinUrl } from '../../url.ts'
import { bundle } from '../certificate-bundle.ts'
import { kubernetesConfigOf } from '../machine-config.ts'
import { pemOf } from '../rendered-files.ts'

/** A fresh administrator's kubeconfig, as a compressed archive of one file. */
export const kubeconfig = serverStream('machine.MachineService/Kubeconfig', ['os:admin'], async function* (_, { store }) {
  const root = store.get(KubernetesRootSecret, 'k8s')?.spec
  const config = kubernetesConfigOf(store.get(MachineConfig, 'v1alpha1'))
  if (config?.machine?.type === 'worker') throw new RpcError('Unimplemented', 'kubeconfig: this is a worker, ask a control plane node')
  if (!root?.issuingCA?.key || !root.endpoint)
    throw new RpcError('FailedPrecondition', 'kubeconfig: the node has no Kubernetes authority yet')
  const now = new Date()
  const { crt, key } = newCertificate({
    ca: { crt: pemOf(root.issuingCA.crt), key: pemOf(root.issuingCA.key) },
    subject: { commonName: 'admin', organizations: ['system:masters'] },
    usage: ['clientAuth'],
    lifetime: milliseconds(config?.cluster?.adminKubeconfig?.certLifetime) || year,
    now,
  })
  const name = `admin@${root.name}`
  const text = formatKubeconfig(
    buildKubeconfig({
      cluster: root.name,
      user: name,
      context: name,
      namespace: 'default',
      server: joinUrl(root.endpoint),
      ca: bundle([pemOf(root.issuingCA.crt), ...(root.acceptedCAs ?? []).map((ca) => pemOf(ca.crt))]),
      cert: crt,
      key,
    }),
  )
  const archive = await Array.fromAsync(writeTar([{ path: 'kubeconfig', type: 'file', mode: 0o600, content: Buffer.from(text) }]))
  yield { bytes: Buffer.from(Bun.gzipSync(Buffer.concat(archive))) }
})
