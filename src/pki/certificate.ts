/**
 * Certificate authorities and the certificates they sign.
 *
 * Everything this module returns is PEM in a pair `{ crt, key }`, the form in which it is stored, sent and given to TLS.
 */
import { createHash, randomBytes } from 'node:crypto'
import { DecodeError } from '../wire/decode-error.ts'
import { DerReader } from '../wire/der.ts'
import { decodePem, encodePem, pemBlock, pemLabels } from '../wire/pem.ts'
import { type DecodedCertificate, decodeCertificate, encodeSigned, encodeTbsCertificate } from '../wire/x509/certificate.ts'
import type { AltNames, ExtendedKeyUsage, KeyUsage } from '../wire/x509/extensions.ts'
import { encodeName, type Name } from '../wire/x509/name.ts'
import { type KeyKind, type KeyPair, newKey, parseKey, signatureAlgorithmOf, signWith, verifySignature } from './key.ts'

/** A certificate and its private key, both PEM. */
export interface PemPair {
  crt: string
  key: string
}

/** Milliseconds in common lifetimes. */
export const day = 24 * 3600_000
export const authorityLifetime = 3650 * day
export const year = 365 * day

// a peer's clock may be behind the one that signs
const backdate = 60_000

/** Options of a new authority. */
export interface AuthorityOptions {
  subject: Name
  /** Default: Ed25519. */
  kind?: 'ed25519' | 'ecdsa'
  /** An existing key of any kind. Default: a new key. */
  key?: KeyPair
  sans?: AltNames
  /** Milliseconds. */
  lifetime?: number
  now?: Date
}

/** Creates a self-signed authority. */
export function newCA({
  subject,
  kind = 'ed25519',
  key = newKey(kind),
  sans,
  lifetime = authorityLifetime,
  now = new Date(),
}: AuthorityOptions): PemPair {
  const keyId = keyIdOf(key.spki)
  const crt = sign(key, {
    issuer: encodeName(subject),
    subject,
    publicKey: key.spki,
    now,
    lifetime,
    extensions: {
      keyUsage: ['digitalSignature', 'certSign'],
      extendedKeyUsage: ['serverAuth', 'clientAuth'],
      isCA: true,
      subjectKeyId: keyId,
      ...(sans && { altNames: sans }),
    },
  })
  return { crt, key: key.pem }
}

/** Options of a new certificate. */
export interface CertificateOptions {
  ca: PemPair
  subject: Name
  sans?: AltNames
  usage: ExtendedKeyUsage[]
  /** Default: digitalSignature, with keyEncipherment for keys other than Ed25519. */
  keyUsage?: KeyUsage[]
  /** Milliseconds. */
  lifetime: number
  now?: Date
}

/** Creates a key and a certificate for it. Default kind of the key: the same as the authority's. */
export function newCertificate({ kind, ...options }: CertificateOptions & { kind?: 'ed25519' | 'ecdsa' }): PemPair {
  const ca = parseKey(options.ca.key)
  const key = newKey(kind ?? (ca.kind === 'rsa' ? 'ecdsa' : ca.kind))
  return { crt: certify(options, ca, key.spki, key.kind), key: key.pem }
}

/** Signs a public key (SubjectPublicKeyInfo). */
export function certifyKey(options: CertificateOptions, spki: Uint8Array, kind: KeyKind): string {
  return certify(options, parseKey(options.ca.key), spki, kind)
}

function certify(
  { ca, subject, sans, usage, keyUsage, lifetime, now = new Date() }: CertificateOptions,
  caKey: KeyPair,
  spki: Uint8Array,
  kind: KeyKind,
) {
  const authority = parseCertificate(ca.crt)
  return sign(caKey, {
    issuer: authority.rawSubject,
    subject,
    publicKey: spki,
    now,
    lifetime,
    extensions: {
      keyUsage: keyUsage ?? (kind === 'ed25519' ? ['digitalSignature'] : ['digitalSignature', 'keyEncipherment']),
      extendedKeyUsage: usage,
      isCA: false,
      subjectKeyId: keyIdOf(spki),
      authorityKeyId: authority.extensions.subjectKeyId ?? keyIdOf(caKey.spki),
      ...(sans && { altNames: sans }),
    },
  })
}

interface ToSign {
  issuer: Uint8Array
  subject: Name
  publicKey: Uint8Array
  now: Date
  lifetime: number
  extensions: DecodedCertificate['extensions']
}

function sign(key: KeyPair, { now, lifetime, ...fields }: ToSign): string {
  const algorithm = signatureAlgorithmOf[key.kind]
  const serial = randomBytes(16)
  serial.writeUInt8((serial.readUInt8() & 0x7f) | 0x40)
  const notBefore = new Date(now.getTime() - backdate)
  const tbs = encodeTbsCertificate({ ...fields, serial, algorithm, notBefore, notAfter: new Date(now.getTime() + lifetime) })
  return encodePem(pemLabels.certificate, encodeSigned(tbs, algorithm, signWith(key, tbs)))
}

/** SHA-1 of the public key's bits (RFC 5280 §4.2.1.2, first method). */
function keyIdOf(spki: Uint8Array): Uint8Array {
  const info = new DerReader('public key', spki).enter()
  info.next()
  return createHash('sha1').update(info.bits()).digest()
}

/** Parses the first certificate of a PEM file. */
export function parseCertificate(pem: string): DecodedCertificate {
  return decodeCertificate(pemBlock(pem, pemLabels.certificate).der)
}

/** Parses every certificate of a PEM file; blocks of other types are skipped. */
export function parseCertificates(pem: string): DecodedCertificate[] {
  return decodePem(pem)
    .filter(({ label }) => label === pemLabels.certificate)
    .map(({ der }) => decodeCertificate(der))
}

/** Whether the authority issued this certificate, by name and by key. */
export function issuedBy(certificate: DecodedCertificate, authority: DecodedCertificate): boolean {
  return (
    Buffer.compare(certificate.rawIssuer, authority.rawSubject) === 0 &&
    verifySignature(authority.publicKey, certificate.algorithm, certificate.tbs, certificate.signature)
  )
}

/** Whether one of the authorities in a PEM file signed the first certificate of another; false when either cannot be parsed. */
export function signedBy(pem: string, authorities: string): boolean {
  try {
    const certificate = parseCertificate(pem)
    return parseCertificates(authorities).some((authority) => issuedBy(certificate, authority))
  } catch {
    return false
  }
}

/** Whether the private key belongs to the certificate. */
export const matches = ({ crt, key }: PemPair): boolean => Buffer.compare(parseCertificate(crt).publicKey, parseKey(key).spki) === 0

/** SHA-256 of the public key (SubjectPublicKeyInfo), as `--cert-fingerprint` takes it: base64. */
export function fingerprint(pem: string): string {
  return createHash('sha256').update(parseCertificate(pem).publicKey).digest('base64')
}

/** When a certificate is due for renewal: at half of its lifetime. */
export function renewalTime(pem: string): Date {
  const { notBefore, notAfter } = parseCertificate(pem)
  return new Date(notBefore.getTime() + (notAfter.getTime() - notBefore.getTime()) / 2)
}

/** Whether a certificate should be renewed: half of its lifetime has passed, or it is not yet valid. */
export function dueForRenewal(pem: string, now: Date): boolean {
  return now >= renewalTime(pem) || now < parseCertificate(pem).notBefore
}

/** Base64 of PEM, the form of certificates and keys in YAML. */
export const toBase64 = (pem: string): string => Buffer.from(pem).toString('base64')

/** Decodes `toBase64`; refuses anything but base64. */
export function fromBase64(value: string): string {
  const stripped = value.replace(/\s+/g, '')
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(stripped)) throw new DecodeError('base64', 0, 'not base64')
  return Buffer.from(stripped, 'base64').toString('utf8')
}
