import type { Round } from '../../../cosi/controller.ts'
import type { SpecOf } from '../../../cosi/resource.ts'
import type { KubernetesRootSecret } from '../../secrets/resources/kubernetes-root-secret.ts'
import { requestClientCertificate } from './bootstrap.ts'
import { hasClientCertificate, type KubeletAccess, type KubeletFileSystem, keepClientCertificate, signClientCertificate } from './files.ts'

/** How long a joining node requests its kubelet's certificate before the kubelet starts without one, in milliseconds. */
const joinTimeout = 120_000

/** What decides about the certificate in one round. */
export interface ClientCertificateInputs {
  access: KubeletAccess
  nodename?: string | undefined
  root?: SpecOf<typeof KubernetesRootSecret> | undefined
  /** The kubelet registers with a cluster, so it needs a certificate. */
  registers: boolean
  /** The kubelet's start waits for a requested certificate. */
  waits: boolean
}

/** The kubelet's client certificate: signed here where the node has the cluster's authority, else requested from the cluster. */
export class ClientCertificate {
  readonly #files: KubeletFileSystem
  /** The inputs of the last request; requested again only after there was a valid certificate in between. */
  #requested = ''
  #replaced = 0

  constructor(files: KubeletFileSystem) {
    this.#files = files
  }

  /** Counts replaced certificates: the kubelet reads its own only at its start. */
  get replaced(): number {
    return this.#replaced
  }

  /** Renews a certificate that is missing or no longer valid. False while it is requested and the kubelet waits for it. */
  async ensure(
    { access, nodename, root, registers, waits }: ClientCertificateInputs,
    { now, background, log }: Pick<Round, 'now' | 'background' | 'log'>,
  ): Promise<boolean> {
    if (!registers || (await hasClientCertificate(this.#files, { nodename, authorities: access.ca, now: now() }))) {
      this.#requested = ''
      return true
    }
    if (!nodename) return true
    if (root?.issuingCA?.key) {
      await this.#keep(signClientCertificate(root, nodename, now()), now())
      return true
    }
    const joining = JSON.stringify([access, nodename])
    if (!waits || this.#requested === joining) return true
    background({ name: 'join', of: Bun.hash(joining).toString(36) }, async (signal, wake, report) => {
      try {
        await this.#keep(await requestClientCertificate(access, nodename, { signal, timeout: joinTimeout, report }), now())
      } catch (error) {
        if (signal.aborted) throw error
        log.warn('no kubelet certificate yet, the kubelet will request one', { error })
      }
      this.#requested = joining
      wake()
    })
    return false
  }

  async #keep(pair: Parameters<typeof keepClientCertificate>[1], now: Date): Promise<void> {
    await keepClientCertificate(this.#files, pair, now)
    this.#replaced++
  }
}
