/** X.509 v3 certificates (RFC 5280 §4.1): encoding of the signed part, signing and decoding. */
import { bitString, DerReader, explicit, integer, nothing, oid, sequence, tags, time } from '../der.ts'
import { decodeExtensions, type Extensions, encodeExtensions } from './extensions.ts'
import { decodeName, encodeName, type Name } from './name.ts'

/** Signature algorithms by name. */
const signatureAlgorithms = {
  ed25519: '1.3.101.112',
  'ecdsa-sha256': '1.2.840.10045.4.3.2',
  'ecdsa-sha384': '1.2.840.10045.4.3.3',
  'rsa-sha256': '1.2.840.113549.1.1.11',
  'rsa-sha384': '1.2.840.113549.1.1.12',
  'rsa-sha512': '1.2.840.113549.1.1.13',
} as const
/** The signature algorithm of a certificate or request. */
export type SignatureAlgorithm = keyof typeof signatureAlgorithms

/** AlgorithmIdentifier; only RSA has a NULL parameter. */
const algorithmIdentifier = (algorithm: SignatureAlgorithm): Uint8Array =>
  sequence(oid(signatureAlgorithms[algorithm]), ...(algorithm.startsWith('rsa') ? [nothing()] : []))

/** Decodes an AlgorithmIdentifier; an unknown algorithm stays a dotted identifier. */
export function decodeAlgorithm(reader: DerReader): SignatureAlgorithm | (string & {}) {
  const id = reader.oid()
  return Object.entries(signatureAlgorithms).find(([, known]) => known === id)?.[0] ?? id
}

/** The fields of a certificate. */
export interface CertificateFields {
  /** Big endian, positive. */
  serial: Uint8Array
  algorithm: SignatureAlgorithm
  /** The issuer's subject, byte for byte as in its certificate. */
  issuer: Uint8Array
  subject: Name
  notBefore: Date
  notAfter: Date
  /** SubjectPublicKeyInfo. */
  publicKey: Uint8Array
  extensions: Extensions
}

/** Encodes the part that is signed. */
export function encodeTbsCertificate(fields: CertificateFields): Uint8Array {
  const subject = encodeName(fields.subject)
  return sequence(
    explicit(0, integer(2)),
    integer(fields.serial),
    algorithmIdentifier(fields.algorithm),
    fields.issuer,
    sequence(time(fields.notBefore), time(fields.notAfter)),
    subject,
    fields.publicKey,
    explicit(3, encodeExtensions(fields.extensions, subject.length === 2)),
  )
}

/** Combines the signed part with its signature; certificates and requests share this form. */
export const encodeSigned = (signed: Uint8Array, algorithm: SignatureAlgorithm, signature: Uint8Array): Uint8Array =>
  sequence(signed, algorithmIdentifier(algorithm), bitString(signature))

/** A decoded certificate. */
export interface DecodedCertificate {
  raw: Uint8Array
  /** The signed part. */
  tbs: Uint8Array
  /** Lower-case hex. */
  serial: string
  algorithm: SignatureAlgorithm | (string & {})
  signature: Uint8Array
  issuer: Name
  rawIssuer: Uint8Array
  subject: Name
  rawSubject: Uint8Array
  notBefore: Date
  notAfter: Date
  publicKey: Uint8Array
  extensions: Extensions
}

/** Decodes a DER certificate. */
export function decodeCertificate(der: Uint8Array): DecodedCertificate {
  const file = new DerReader('certificate', der)
  const whole = file.enter()
  file.end()
  const tbs = whole.next(tags.sequence)
  const algorithm = decodeAlgorithm(whole.enter())
  const signature = whole.bits()
  whole.end()
  const body = new DerReader('certificate', tbs.content, tbs.offset)
  body.optional(0xa0)
  const serial = Buffer.from(body.integer()).toString('hex')
  body.next(tags.sequence)
  const issuer = body.next(tags.sequence)
  const validity = body.enter()
  const notBefore = validity.time()
  const notAfter = validity.time()
  const subject = body.next(tags.sequence)
  const publicKey = body.next(tags.sequence).raw
  let extensions: Extensions = {}
  while (!body.done) {
    const { tag, content, offset } = body.next()
    if (tag === 0xa3) extensions = decodeExtensions(new DerReader('certificate', content, offset).enter())
  }
  return {
    raw: der,
    tbs: tbs.raw,
    serial,
    algorithm,
    signature,
    issuer: decodeName(new DerReader('certificate', issuer.content, issuer.offset)),
    rawIssuer: issuer.raw,
    subject: decodeName(new DerReader('certificate', subject.content, subject.offset)),
    rawSubject: subject.raw,
    notBefore,
    notAfter,
    publicKey,
    extensions,
  }
}
