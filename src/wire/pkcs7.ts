/** A detached PKCS#7 SignedData (RFC 2315, 9) of one signer, over SHA-256, without attributes. */
import { DerReader, element, integer, nothing, octetString, oid, sequence, tags } from './der.ts'

const data = '1.2.840.113549.1.7.1'
const sha256 = '2.16.840.1.101.3.4.2.1'
const rsa = '1.2.840.113549.1.1.1'

/** Combines an RSA signature and its signer's certificate (DER); without a ContentInfo. */
export function writeSignedData(certificate: Uint8Array, signature: Uint8Array): Uint8Array {
  const digest = sequence(oid(sha256), nothing())
  const signer = sequence(integer(1), issuerAndSerial(certificate), digest, sequence(oid(rsa), nothing()), octetString(signature))
  return sequence(
    integer(1),
    element(tags.set, digest),
    sequence(oid(data)),
    element(0xa0, certificate), // [0] IMPLICIT SET OF
    element(tags.set, signer),
  )
}

/** Issuer and serial number of a certificate, byte for byte. */
function issuerAndSerial(certificate: Uint8Array): Uint8Array {
  const body = new DerReader('certificate', certificate).enter().enter()
  body.next() // version
  const serial = body.next(tags.integer)
  body.next() // algorithm
  const issuer = body.next(tags.sequence)
  return sequence(issuer.raw, serial.raw)
}
