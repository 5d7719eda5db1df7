/** Certificate signing requests (PKCS#10, RFC 2986). */
import { DerReader, explicit, integer, sequence, tags } from '../der.ts'
import { decodeAlgorithm, type SignatureAlgorithm } from './certificate.ts'
import { decodeExtensions, type Extensions, extensionRequest } from './extensions.ts'
import { decodeName, encodeName, type Name } from './name.ts'

/** A decoded request. */
export interface DecodedRequest {
  /** The signed part. */
  signed: Uint8Array
  algorithm: SignatureAlgorithm | (string & {})
  signature: Uint8Array
  subject: Name
  /** SubjectPublicKeyInfo. */
  publicKey: Uint8Array
  /** The requested extensions; the signer decides on its own. */
  extensions: Extensions
}

/** Encodes the part of a request that its own key signs. */
export const encodeRequestInfo = (subject: Name, publicKey: Uint8Array, extensions: Extensions): Uint8Array =>
  sequence(integer(0), encodeName(subject), publicKey, explicit(0, extensionRequest(extensions)))

/** Decodes a DER request. */
export function decodeRequest(der: Uint8Array): DecodedRequest {
  const file = new DerReader('certificate request', der)
  const whole = file.enter()
  file.end()
  const info = whole.next(tags.sequence)
  const algorithm = decodeAlgorithm(whole.enter())
  const signature = whole.bits()
  const body = new DerReader('certificate request', info.content, info.offset)
  body.integer()
  const subject = decodeName(body.enter())
  const publicKey = body.next(tags.sequence).raw
  let extensions: Extensions = {}
  const attributes = body.optional(0xa0)
  if (attributes) {
    const list = new DerReader('certificate request', attributes.content, attributes.offset)
    while (!list.done) {
      const attribute = list.enter()
      if (attribute.oid() === '1.2.840.113549.1.9.14') extensions = decodeExtensions(attribute.enter(tags.set).enter())
    }
  }
  return { signed: info.raw, algorithm, signature, subject, publicKey, extensions }
}
