/** Probes the cluster's endpoint: whether it answers, and which authority signed its certificate. */
import type { Store } from '../../cosi/store.ts'
import { messageOf } from '../../wire/error-message.ts'
import { type HostPort, hostPortOfUrl } from '../../wire/host-port.ts'
import { encodePem, pemLabels } from '../../wire/pem.ts'
import { declared } from '../config/public.ts'
import { MachineConfig } from '../config/resources/machine-config.ts'
import { pemOf } from '../k8s/public.ts'
import { KubeletSecret } from '../secrets/resources/kubelet-secret.ts'
import { type Evidence, type Finding, foreignCertificate } from './findings.ts'
import { silentParty } from './outside.ts'

/** Timeout of the probe, in milliseconds. */
const timeout = 2_000

/** An endpoint that does not answer or belongs to another cluster; nothing when it is fine or unknown. */
export async function endpointTrouble(evidence: Evidence, signal?: AbortSignal): Promise<Finding[]> {
  const { store } = evidence
  const endpoint = declared(store.get(MachineConfig, 'v1alpha1'))?.cluster.controlPlane?.endpoint
  const target = hostPortOfUrl(endpoint)
  if (!target) return []
  try {
    const certificate = await serverCertificate(target, signal)
    const authorities = acceptedBy(store)
    return foreignCertificate(`the API server at ${endpoint}`, certificate, authorities, ['cluster.ca', 'cluster.acceptedCAs'], evidence)
  } catch (error) {
    const sentence = 'nothing answers there: check cluster.controlPlane.endpoint, or whether a control plane runs'
    return [silentParty(`cluster endpoint ${endpoint}`, sentence, messageOf(error))]
  }
}

const acceptedBy = (store: Store): string[] => (store.get(KubeletSecret, 'kubelet')?.spec.acceptedCAs ?? []).map(({ crt }) => pemOf(crt))

/** The certificate that a TLS server presents, PEM. Only its issuer is read; nothing is trusted. */
function serverCertificate({ host: hostname, port }: HostPort, signal?: AbortSignal): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const limit = AbortSignal.timeout(timeout)
  const late = () => reject(new Error(`no answer within ${timeout} ms`))
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
