/**
 * What shows that a change of authorities locks nobody out, where no connection is made after it. A client that rotates
 * authorities keeps its connection; its certificate shows that it will be let in over the next one. That the machine serves
 * with a certificate of the new authority is shown by a connection to its own API. Neither says anything about the way to
 * the machine, so both count only where nothing else is changed that could cut it off.
 */
import { X509Certificate } from 'node:crypto'
import type { ConfigContainer } from '../container.ts'
import type { Probe } from '../probe.ts'
import { apiPort, type Risk } from './reach.ts'

/** A change of authorities that waits to be confirmed. */
export interface AuthorityTrial {
  /** Fingerprints (SHA-256) of the authorities whose clients are let in afterwards, and accept the machine's certificate. */
  readonly clients: ReadonlySet<string>
  /** The machine's own API, answering with a certificate of the authority that issues afterwards. */
  readonly own: Probe
}

/** Whether and how a change of authorities is shown to lock nobody out; undefined where more than authorities is at risk. */
export function authorityTrial(risk: Risk, stays: ConfigContainer, next: ConfigContainer): AuthorityTrial | undefined {
  if (!risk.authority || risk.network || risk.firewall || risk.names) return undefined
  const { ca, acceptedCAs = [] } = next.v1alpha1?.machine ?? {}
  const issuing = certificateOf(ca?.crt)
  if (!issuing) return undefined
  // Clients of an authority that is merely accepted know the certificate of the one that issued before.
  const others = ca?.crt === stays.v1alpha1?.machine?.ca?.crt ? acceptedCAs.map(({ crt }) => certificateOf(crt)) : []
  const clients = [issuing, ...others].flatMap((certificate) => certificate?.fingerprint256 ?? [])
  return { clients: new Set(clients), own: { host: '127.0.0.1', port: apiPort, authorities: [issuing.toString()] } }
}

/** A certificate as a configuration has it; undefined when it is none. */
function certificateOf(base64: string | undefined): X509Certificate | undefined {
  try {
    return new X509Certificate(Buffer.from(base64 ?? '', 'base64'))
  } catch {
    return undefined
  }
}
