/** The endpoint of the cluster, asked now: whether anybody answers there, and with a certificate of which authority. */
import type { Store } from '../../../cosi/store.ts'
import { encodePem, pemLabels } from '../../../wire/pem.ts'
import { declared } from '../../config/declared.ts'
import { MachineConfig } from '../../config/resources/machine-config.ts'
import { pemOf } from '../../k8s/rendered-files.ts'
import { KubeletSecret } from '../../secrets/resources/kubelet-secret.ts'
import { type Evidence, type Finding, foreignCertificate } from './findings.ts'

/** Milliseconds for the answer. */
const patience = 2_000

/** Nobody there, or somebody of another cluster; nothing when all is well or no endpoint is known. */
export async function endpointTrouble(evidence: Evidence, signal?: AbortSignal): Promise<Finding[]> {
  const { store } = evidence
  const endpoint = declared(store.get(MachineConfig, 'v1alpha1'))?.cluster.controlPlane?.endpoint as string | undefined
  if (!endpoint || !URL.canParse(endpoint)) return []
  const { hostname, port } = new URL(endpoint)
  try {
    const certificate = await serverCertificate(hostname.replace(/^\[(.*)\]$/, '$1'), Number(port) || 443, signal)
    const authorities = acceptedBy(store)
    return foreignCertificate(`the API server at ${endpoint}`, certificate, authorities, ['cluster.ca', 'cluster.acceptedCAs'], evidence)
  } catch (error) {
    const sentence = 'nothing answers there: check cluster.controlPlane.endpoint, or whether a control plane runs'
    return [
      {
        kind: 'outside',
        subject: `cluster endpoint ${endpoint}`,
        sentence,
        error: error instanceof Error ? error.message : String(error),
      },
    ]
  }
}

const acceptedBy = (store: Store): string[] => (store.get(KubeletSecret, 'kubelet')?.spec.acceptedCAs ?? []).map(({ crt }) => pemOf(crt))

/** The certificate that a TLS server shows, PEM. Only who it says it is is asked, nothing is believed. */
function serverCertificate(hostname: string, port: number, signal?: AbortSignal): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const limit = AbortSignal.timeout(patience)
  const late = () => reject(new Error(`no answer within ${patience} ms`))
  const gone = () => reject(signal?.reason)
  limit.addEventListener('abort', late)
  signal?.addEventListener('abort', gone)
  const opened: { end(): void }[] = []
  const socket: Bun.SocketHandler<undefined> = {
    open(connection) {
      opened.push(connection)
    },
    handshake(connection, _, error) {
      const { raw } = (connection.getPeerCertificate() ?? {}) as { raw?: Uint8Array }
      if (raw) resolve(encodePem(pemLabels.certificate, raw))
      else reject(error ?? new Error('it shows no certificate'))
    },
    data() {},
    error: (_, error) => reject(error),
    connectError: (_, error) => reject(error),
    close: () => reject(new Error('it closed the connection')),
  }
  Bun.connect({ hostname, port, socket, tls: { rejectUnauthorized: false, serverName: hostname } }).catch(reject)
  return promise.finally(() => {
    limit.removeEventListener('abort', late)
    signal?.removeEventListener('abort', gone)
    for (const connection of opened) connection.end()
  })
}
