/**
 * A kubelet's first certificate, requested with the cluster's bootstrap token. This is done here and not by the kubelet, since a
 * kubelet that is refused once backs off more and more, while a starting cluster needs only another moment.
 */
import { type Deadline, systemClock } from '../../../cosi/clock.ts'
import { core, type KubeClient, kubeClient } from '../../../kube/client.ts'
import { KubeError } from '../../../kube/errors.ts'
import { signedBy } from '../../../pki/certificate.ts'
import { newKey } from '../../../pki/key.ts'
import { newCSR } from '../../../pki/request.ts'
import { pause } from '../../../timing/pause.ts'
import type { KubeletAccess } from './files.ts'

const retryDelay = 250
const untrustedDelay = 2_000

interface RequestOptions {
  signal: AbortSignal
  timeout: number
  report?: (error?: unknown) => void
  /** Milliseconds before a request that a previous authority has signed is repeated. */
  delay?: number
}

/** Requests a certificate chain and its key, PEM. Throws KubeError when none is issued within the timeout. */
export async function requestClientCertificate(
  access: KubeletAccess,
  nodename: string,
  { signal, timeout, report = () => {}, delay = untrustedDelay }: RequestOptions,
): Promise<{ crt: string; key: string }> {
  const client = kubeClient(access)
  const { csr, key } = newCSR({
    subject: { commonName: `system:node:${nodename}`, organizations: ['system:nodes'] },
    key: newKey('ecdsa'),
  })
  const end = systemClock.deadline(timeout)
  try {
    for (;;) {
      const name = await keepTrying(end, signal, report, () => submit(client, csr, signal))
      const crt = await keepTrying(end, signal, report, () => collect(client, name, signal))
      // While an authority is being replaced, the cluster may sign with the old one for a moment longer.
      if (signedBy(crt, access.ca)) return { crt, key }
      const problem = new KubeError(0, 'Untrusted', `certificate request "${name}" was signed by an authority that is not accepted here`)
      if (end.over) throw problem
      report(problem)
      await pause(delay, signal)
    }
  } finally {
    client.close()
  }
}

async function submit(client: KubeClient, csr: string, signal: AbortSignal): Promise<string> {
  const kind = core.certificateSigningRequest
  const { metadata } = await client.create(
    kind,
    {
      apiVersion: kind.apiVersion,
      kind: kind.kind,
      metadata: { generateName: 'csr-' } as never,
      spec: {
        request: Buffer.from(csr).toString('base64'),
        signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
        usages: ['digital signature', 'client auth'],
      },
    },
    { signal, timeout: 10_000 },
  )
  return metadata.name ?? ''
}

async function collect(client: KubeClient, name: string, signal: AbortSignal): Promise<string> {
  const { status } = await client.get(core.certificateSigningRequest, name, undefined, { signal, timeout: 10_000 })
  const { certificate, conditions = [] } = (status ?? {}) as { certificate?: string; conditions?: { type: string; message?: string }[] }
  if (certificate) return Buffer.from(certificate, 'base64').toString()
  const refusal = conditions.find(({ type }) => type === 'Denied' || type === 'Failed')
  if (refusal) throw new KubeError(0, 'Malformed', `certificate request "${name}" was refused: ${refusal.message ?? refusal.type}`)
  throw new KubeError(0, 'Pending', `certificate request "${name}" is not approved yet`)
}

async function keepTrying<T>(end: Deadline, signal: AbortSignal, report: (error: unknown) => void, act: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await act()
    } catch (error) {
      if (signal.aborted) throw signal.reason
      if (!(error instanceof KubeError) || error.reason === 'Malformed' || end.over) throw error
      report(error)
      await pause(retryDelay, signal)
    }
  }
}
