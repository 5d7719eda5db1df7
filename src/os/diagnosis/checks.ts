/** What is wrong with this node and stays wrong until somebody acts; found by looking, not by a failure of one component. */
import { core, kubeClient } from '../../kube/client.ts'
import type { KubeObject } from '../../kube/object.ts'
import type { KubeAccess } from '../../kube/transport.ts'
import { addressOnly, selects } from '../../wire/prefix.ts'

/** A diagnostic: what it is and what to do, and the values that show it. */
export interface Diagnosis {
  readonly message: string
  readonly details: string[]
}

/** The networks of a node and of its cluster. */
export interface Networks {
  /** Addresses that other machines can route to. */
  readonly addresses: readonly string[]
  readonly pods: readonly string[]
  readonly services: readonly string[]
}

/** Every address of the node lies in the networks of pods and services, so none is left for the node itself. */
export function addressOverlap({ addresses, pods, services }: Networks): Diagnosis | undefined {
  const taken = [...pods, ...services]
  if (addresses.length === 0 || addresses.some((address) => !selects(taken, addressOnly(address)))) return undefined
  return {
    message: 'the addresses of the node overlap with the networks of pods or services: give the cluster other networks',
    details: [
      `addresses of the node: ${addresses.join(', ')}`,
      `networks of pods: ${pods.join(', ')}`,
      `networks of services: ${services.join(', ')}`,
    ],
  }
}

/** The kubelet's TLS port, and the alert that it sends while it has no certificate (RFC 8446, section 6.2). */
const kubeletPort = 10250
const noCertificate = 'TLSV1_ALERT_INTERNAL_ERROR'

/** The kubelet has no serving certificate, because its request for one was not approved. */
export async function kubeletRequest(
  nodename: string,
  access: KubeAccess,
  signal: AbortSignal,
  port = kubeletPort,
): Promise<Diagnosis | undefined> {
  const error = await handshakeError(port, signal)
  if (!error?.includes(noCertificate)) return undefined
  const { items } = await kubeClient(access).list(core.certificateSigningRequest, {}, { signal })
  const waiting = items.filter((request) => isWaiting(request, nodename)).map(({ metadata }) => metadata.name ?? '')
  if (waiting.length === 0) return undefined
  return {
    message: 'the kubelet waits for its serving certificate: approve the requests with "kubectl certificate approve"',
    details: [`error of the TLS handshake: ${error}`, `requests: ${waiting.join(', ')}`],
  }
}

/** A request of this node's kubelet for a serving certificate that was neither approved nor denied. */
function isWaiting({ spec, status }: KubeObject, nodename: string): boolean {
  const { signerName, username } = (spec ?? {}) as { signerName?: string; username?: string }
  const { conditions = [] } = (status ?? {}) as { conditions?: unknown[] }
  return signerName === 'kubernetes.io/kubelet-serving' && username === `system:node:${nodename}` && conditions.length === 0
}

/** The error of a TLS handshake on loopback; undefined when it succeeds. Rejects when there is no server. */
function handshakeError(port: number, signal: AbortSignal): Promise<string | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<string | undefined>()
  const abort = () => reject(signal.reason)
  signal.addEventListener('abort', abort)
  const opened: { end(): void }[] = []
  const socket: Bun.SocketHandler<undefined> = {
    open(connection) {
      opened.push(connection)
    },
    // Its certificate is not looked at, so an untrusted one is no error.
    handshake: (_, success, error) => resolve(success ? undefined : (error?.message ?? 'the handshake failed')),
    data() {},
    close: () => reject(new Error('the kubelet closed the connection')),
    error: (_, error) => reject(error),
    connectError: (_, error) => reject(error),
  }
  Bun.connect({ hostname: '127.0.0.1', port, socket, tls: { rejectUnauthorized: false } }).catch(reject)
  return promise.finally(() => {
    signal.removeEventListener('abort', abort)
    for (const connection of opened) connection.end()
  })
}
