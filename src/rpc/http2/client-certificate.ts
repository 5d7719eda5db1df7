/** Whether a client certificate is valid: now, and under authorities that were replaced after the handshake. */
import { X509Certificate } from 'node:crypto'
import type { DetailedPeerCertificate, PeerCertificate } from 'node:tls'

/** Why a certificate is not valid at a time; undefined when it is. The handshake of a resumed session does not check this again. */
export function expired({ valid_from, valid_to }: Pick<PeerCertificate, 'valid_from' | 'valid_to'>, now: number): string | undefined {
  const [from, to] = [Date.parse(valid_from), Date.parse(valid_to)]
  // An unreadable date is never valid.
  if (!(now <= to)) return `its certificate has expired at ${valid_to}`
  if (!(now >= from)) return `its certificate is not valid before ${valid_from}`
  return undefined
}

/** The certificates of a PEM file. */
export function authoritiesOf(pem: string): X509Certificate[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g) ?? []
  return blocks.map((block) => new X509Certificate(block))
}

/** The authority that issued a verified certificate or one of its chain, or that is itself in the chain. */
export function issuerOf(certificate: PeerCertificate, authorities: readonly X509Certificate[]): X509Certificate | undefined {
  let at: Partial<DetailedPeerCertificate> | undefined = certificate
  for (let depth = 0; at?.raw && depth < 8; depth++) {
    const link = new X509Certificate(at.raw)
    for (const authority of authorities) {
      if (authority.raw.equals(link.raw)) return authority
      if (link.checkIssued(authority) && link.verify(authority.publicKey)) return authority
    }
    if (at.issuerCertificate === at) return undefined
    at = at.issuerCertificate
  }
  return undefined
}
