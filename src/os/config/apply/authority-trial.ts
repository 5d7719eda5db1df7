/**
 * How a change of authorities is shown to lock out no client, where no connection is made after it. A client that rotates
 * authorities keeps its connection; its certificate shows that its next connection will be accepted. A connection to the machine's
 * own API shows that it serves with a certificate of the new authority. Neither proves that the machine is reachable, so both
 * count only where nothing else is changed that could cut it off.
 */
import { X509Certificate } from 'node:crypto'
import type { ConfigContainer } from '../container.ts'
import type { Probe } from '../probe.ts'
import { apiPort, type Risk } from './reach.ts'

/** A change of authorities that waits to be confirmed. */
export interface AuthorityTrial {
  /** Fingerprints (SHA-256) of the authorities whose clients are accepted afterwards, and accept the machine's certificate. */
  readonly clients: ReadonlySet<string>
  /** The machine's own API, answering with a certificate of the authority that issues afterwards. */
  readonly own: Probe
}

/** How a change of authorities is shown to lock out no client; undefined where more than authorities is at risk. */
export function authorityTrial(risk: Risk, stays: ConfigContainer, next: ConfigContainer): AuthorityTrial | undefined {
  if (!risk.authority || risk.network || risk.firewall || risk.names) return undefined
  const { ca, acceptedCAs = [] } = next.v1alpha1?.machine ?? {}
  const issuing = certificateOf(ca?.crt)
  if (!issuing) return undefined
  // Clients of an authority that is only accepted know the certificate of the previous issuing one.
  const others = ca?.crt === stays.v1alpha1?.machine?.ca?.crt ? acceptedCAs.map(({ crt }) => certificateOf(crt)) : []
  const clients = [issuing, ...others].flatMap((certificate) => certificate?.fingerprint256 ?? [])
  return { clients: new Set(clients), own: { host: '127.0.0.1', port: apiPort, authorities: [issuing.toString()] } }
}

/** A certificate in a configuration; undefined when it is invalid. */
function certificateOf(base64: string | undefined): X509Certificate | undefined {
  try {
    return new X509Certificate(Buffer.from(base64 ?? '', 'base64'))
  } catch {
    return undefined
  }
}
