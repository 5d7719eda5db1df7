/** Who a certificate of Fulcio was issued to (github.com/sigstore/fulcio, docs/oid-info.md). */
import { DecodeError } from '../../../wire/decode-error.ts'
import { DerReader, tags } from '../../../wire/der.ts'
import { formatIp } from '../../../wire/ip.ts'
import { decodeCertificate } from '../../../wire/x509/certificate.ts'

const issuerId = '1.3.6.1.4.1.57264.1.8'
/** The same without DER around it, in older certificates. */
const rawIssuerId = '1.3.6.1.4.1.57264.1.1'
const otherNameId = '1.3.6.1.4.1.57264.1.7'
const altNamesId = '2.5.29.17'

/** What a certificate states about a signer. */
export interface CertificateIdentity {
  /** Who verified the identity; empty when the certificate names nobody. */
  readonly issuer: string
  /** E-mail addresses, URIs, host names, IP addresses or other names; a certificate of Fulcio has one. */
  readonly subjects: readonly string[]
  /** Whether the certificate is one for signatures of code. */
  readonly forCode: boolean
}

/** Decodes the identity in a DER certificate. Throws DecodeError. */
export function decodeIdentity(der: Uint8Array): CertificateIdentity {
  const { tbs, extensions } = decodeCertificate(der)
  const values = extensionsOf(tbs)
  const issuer = values.get(issuerId)
  const names = values.get(altNamesId)
  return {
    issuer: issuer ? textOf(issuer) : Buffer.from(values.get(rawIssuerId) ?? []).toString(),
    subjects: names ? subjectsOf(names) : [],
    forCode: extensions.extendedKeyUsage?.includes('codeSigning') ?? false,
  }
}

/** The values of the extensions by identifier. */
function extensionsOf(tbs: Uint8Array): Map<string, Uint8Array> {
  const found = new Map<string, Uint8Array>()
  const body = new DerReader('certificate', tbs).enter()
  while (!body.done) {
    const { tag, content, offset } = body.next()
    if (tag !== 0xa3) continue
    const list = new DerReader('certificate', content, offset).enter()
    while (!list.done) {
      const item = list.enter()
      const id = item.oid()
      item.optional(tags.boolean)
      // RFC 5280 §4.2: a certificate must not have two of a kind.
      if (found.has(id)) throw new DecodeError('certificate', offset, `extension ${id} twice`)
      found.set(id, item.next(tags.octetString).content)
    }
  }
  return found
}

function textOf(value: Uint8Array): string {
  const reader = new DerReader('certificate', value)
  const text = reader.text()
  reader.end()
  return text
}

/** GeneralNames (RFC 5280 §4.2.1.6). */
function subjectsOf(value: Uint8Array): string[] {
  const names = new DerReader('certificate', value).enter()
  const subjects: string[] = []
  while (!names.done) {
    const { tag, content, offset } = names.next()
    if (tag === 0x81 || tag === 0x82 || tag === 0x86) subjects.push(Buffer.from(content).toString())
    else if (tag === 0x87 && (content.length === 4 || content.length === 16)) subjects.push(formatIp(content))
    else if (tag === 0xa0) {
      const other = new DerReader('certificate', content, offset)
      if (other.oid() === otherNameId) subjects.push(other.enter(0xa0).text())
    }
  }
  return subjects
}
