/** Certificate signing requests: created by a worker, checked and signed by a control plane. */
import { DecodeError } from '../wire/decode-error.ts'
import { encodePem, pemBlock, pemLabels } from '../wire/pem.ts'
import { encodeSigned } from '../wire/x509/certificate.ts'
import type { AltNames } from '../wire/x509/extensions.ts'
import type { Name } from '../wire/x509/name.ts'
import { type DecodedRequest, decodeRequest, encodeRequestInfo } from '../wire/x509/request.ts'
import { type CertificateOptions, certifyKey } from './certificate.ts'
import { type KeyKind, type KeyPair, newKey, signatureAlgorithmOf, signWith, verifySignature } from './key.ts'

/** Creates a request, with a new Ed25519 key unless one is given. */
export function newCSR({ subject, sans = {}, key = newKey('ed25519') }: { subject: Name; sans?: AltNames; key?: KeyPair }): {
  csr: string
  key: string
} {
  const info = encodeRequestInfo(subject, key.spki, { altNames: sans })
  const algorithm = signatureAlgorithmOf[key.kind]
  return { csr: encodePem(pemLabels.request, encodeSigned(info, algorithm, signWith(key, info))), key: key.pem }
}

/** Parses a request and checks that it is signed with its own key. */
export function parseCSR(pem: string): DecodedRequest {
  const request = decodeRequest(pemBlock(pem, pemLabels.request).der)
  if (!verifySignature(request.publicKey, request.algorithm, request.signed, request.signature)) {
    throw new DecodeError('certificate request', 0, 'its signature does not verify')
  }
  return request
}

/** Signs a request. The caller may override subject and names; usage and lifetime are always the caller's. */
export function signCSR(
  pem: string,
  { subject, sans, ...options }: Omit<CertificateOptions, 'subject'> & { subject?: ((requested: Name) => Name) | undefined },
): string {
  const request = parseCSR(pem)
  const names = sans ?? request.extensions.altNames
  const kind: KeyKind = request.algorithm === 'ed25519' ? 'ed25519' : request.algorithm.startsWith('rsa') ? 'rsa' : 'ecdsa'
  return certifyKey(
    { ...options, subject: subject?.(request.subject) ?? request.subject, ...(names && { sans: names }) },
    request.publicKey,
    kind,
  )
}
