/** The files the kubelet is started with, and those that its previous run has left. */

import type { SpecOf } from '../../../cosi/resource.ts'
import { formatKubeconfig, parseKubeconfig } from '../../../kube/kubeconfig.ts'
import type { KubeAccess } from '../../../kube/transport.ts'
import { kubeYaml } from '../../../kube/yaml.ts'
import { newCertificate, parseCertificates, signedBy, year } from '../../../pki/certificate.ts'
import type { Kernel } from '../../kernel.ts'
import type { KubeletSecret } from '../../secrets/resources/kubelet-secret.ts'
import type { KubernetesRootSecret } from '../../secrets/resources/kubernetes-root-secret.ts'
import { joinUrl } from '../../url.ts'
import { bundle } from '../certificate-bundle.ts'
import { pemOf } from '../rendered-files.ts'
import type { KubeletSpec } from '../resources/kubelet.ts'

/** The kernel calls that are used. */
export type KubeletFileSystem = Pick<
  Kernel['files'],
  'exists' | 'mkdirAll' | 'readTextIfThere' | 'remove' | 'removeFile' | 'lstatIfThere' | 'symlink' | 'writeAtomic'
>

const pkiFolder = '/var/lib/kubelet/pki'
const current = `${pkiFolder}/kubelet-client-current.pem`
const currentServing = `${pkiFolder}/kubelet-server-current.pem`
/** The configuration of credential providers. It may hold credentials, so it is removed together with its setting. */
export const credentialProviderFile = '/etc/kubernetes/kubelet-credentialproviderconfig.yaml'
const kubeconfigFile = '/etc/kubernetes/kubeconfig-kubelet'

/** The endpoint and token with which a kubelet joins. */
export interface KubeletAccess {
  server: string
  ca: string
  token: string
}

/** A kubelet's access to the API before it has a certificate. */
export function bootstrapAccess(secret: SpecOf<typeof KubeletSecret>): KubeletAccess | undefined {
  if (!secret.endpoint) return undefined
  return {
    server: joinUrl(secret.endpoint),
    ca: bundle((secret.acceptedCAs ?? []).map(({ crt }) => pemOf(crt))),
    token: `${secret.bootstrapTokenID}.${secret.bootstrapTokenSecret}`,
  }
}

/** Writes the files that the kubelet reads at its start. */
export async function writeKubeletFiles(files: KubeletFileSystem, spec: SpecOf<typeof KubeletSpec>, access: KubeletAccess): Promise<void> {
  for (const folder of ['/etc/kubernetes', '/etc/kubernetes/pki', '/etc/kubernetes/manifests']) files.mkdirAll(folder, { mode: 0o700 })
  const write = async (path: string, content: string) => {
    if (files.readTextIfThere(path) !== content) await files.writeAtomic(path, content, { mode: 0o600 })
  }
  await write('/etc/kubernetes/kubelet.yaml', kubeYaml(spec.config))
  await write('/etc/kubernetes/pki/ca.crt', access.ca)
  await write('/etc/kubernetes/bootstrap-kubeconfig', bootstrapKubeconfig(access))
  if (spec.credentialProviderConfig) {
    const content = kubeYaml({
      apiVersion: 'kubelet.config.k8s.io/v1',
      kind: 'CredentialProviderConfig',
      ...spec.credentialProviderConfig,
    })
    await write(credentialProviderFile, content)
  } else if (files.lstatIfThere(credentialProviderFile)) files.removeFile(credentialProviderFile)
  await refreshKubeconfig(files, access)
}

/** The kubelet's bootstrap kubeconfig: with the token that all nodes share. */
export function bootstrapKubeconfig({ server, ca, token }: KubeletAccess): string {
  return formatKubeconfig({
    clusters: new Map([['local', { server, 'certificate-authority-data': Buffer.from(ca).toString('base64') }]]),
    users: new Map([['kubelet', { token }]]),
    contexts: new Map([['kubelet@local', { cluster: 'local', user: 'kubelet' }]]),
    currentContext: 'kubelet@local',
    rest: {},
  })
}

/** Updates the server and authority in the kubelet's kubeconfig, which the kubelet writes only once. */
async function refreshKubeconfig(files: KubeletFileSystem, { server, ca }: KubeletAccess): Promise<void> {
  const text = files.readTextIfThere(kubeconfigFile)
  if (!text) return
  try {
    const config = parseKubeconfig(text)
    const data = Buffer.from(ca).toString('base64')
    for (const [name, cluster] of config.clusters) {
      const { 'certificate-authority': _, ...rest } = cluster
      config.clusters.set(name, { ...rest, server, 'certificate-authority-data': data })
    }
    const updated = formatKubeconfig(config)
    if (updated !== text) await files.writeAtomic(kubeconfigFile, updated, { mode: 0o600 })
  } catch {
    // An unreadable one is of no use to the kubelet either: it writes a new one.
    files.removeFile(kubeconfigFile)
  }
}

/**
 * Whether the kubelet has a usable client certificate: for this node's name, signed by an accepted authority, and not expired. A
 * certificate for another name or of another authority is removed together with the kubelet's kubeconfig, so that the kubelet
 * joins as if for the first time.
 */
export async function hasClientCertificate(
  files: KubeletFileSystem,
  { nodename, authorities, now }: { nodename: string | undefined; authorities: string; now: Date },
): Promise<boolean> {
  const text = files.readTextIfThere(current)
  const certificate = text ? firstCertificate(text) : undefined
  const foreign = (pem: string) => authorities !== '' && !signedBy(pem, authorities)
  if (text && certificate && ((nodename && certificate.subject.commonName !== `system:node:${nodename}`) || foreign(text))) {
    await files.remove(pkiFolder)
    if (files.lstatIfThere(kubeconfigFile)) files.removeFile(kubeconfigFile)
    return false
  }
  // A serving certificate that the cluster signed is replaced by the kubelet itself, but only when it is about to expire.
  const serving = files.readTextIfThere(currentServing)
  if (serving && foreign(serving)) files.removeFile(currentServing)
  return certificate !== undefined && certificate.notAfter.getTime() > now.getTime()
}

/**
 * A control plane node signs its kubelet's first certificate itself: it has the authority's key, and a request to its own API
 * server, which the kubelet has yet to start, would only take longer.
 */
export function signClientCertificate(
  root: SpecOf<typeof KubernetesRootSecret>,
  nodename: string,
  now: Date,
): { crt: string; key: string } {
  return newCertificate({
    ca: { crt: pemOf(root.issuingCA?.crt), key: pemOf(root.issuingCA?.key) },
    subject: { commonName: `system:node:${nodename}`, organizations: ['system:nodes'] },
    usage: ['clientAuth'],
    lifetime: year,
    now,
  })
}

/** Writes a certificate where the kubelet expects its own; from then on the kubelet renews it. */
export async function keepClientCertificate(
  files: KubeletFileSystem,
  { crt, key }: { crt: string; key: string },
  now: Date,
): Promise<void> {
  files.mkdirAll(pkiFolder, { mode: 0o700 })
  const stamp = now.toISOString().slice(0, 19).replace('T', '-').replaceAll(':', '-')
  const path = `${pkiFolder}/kubelet-client-${stamp}.pem`
  await files.writeAtomic(path, `${crt.trim()}\n${key.trim()}\n`, { mode: 0o600 })
  if (files.lstatIfThere(current)) files.removeFile(current)
  files.symlink(path, current)
}

/** The client certificate that the kubelet uses, as PEM with its key. */
export const kubeletClientCertificate = (files: Pick<KubeletFileSystem, 'readTextIfThere'>): string | undefined =>
  files.readTextIfThere(current)

/** The kubelet's access to the API, once it has its kubeconfig. */
export function kubeletAccess(files: Pick<KubeletFileSystem, 'readTextIfThere'>): KubeAccess | undefined {
  const text = files.readTextIfThere(kubeconfigFile)
  const pem = files.readTextIfThere(current)
  if (!text || !pem) return undefined
  const cluster = firstCluster(text)
  const ca = cluster?.['certificate-authority-data']
  const key = pem.match(/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]+?-----END [A-Z ]*PRIVATE KEY-----/)?.[0]
  if (typeof cluster?.server !== 'string' || typeof ca !== 'string' || !key) return undefined
  return { server: cluster.server, ca: Buffer.from(ca, 'base64').toString(), cert: pem.replace(key, ''), key }
}

/** A damaged kubeconfig is ignored: it is written again before the kubelet starts. */
function firstCluster(text: string) {
  try {
    return parseKubeconfig(text).clusters.values().next().value
  } catch {
    return undefined
  }
}

function firstCertificate(pem: string) {
  try {
    return parseCertificates(pem)[0]
  } catch {
    return undefined
  }
}
