/** Responses of an authority for time (RFC 3161), in the form of signed data (RFC 5652). */
import { createHash, type KeyObject, sign } from 'node:crypto'
import { element, explicit, integer, nothing, octetString, oid, sequence, setOf, tags } from '../../../src/wire/der.ts'

const sha256 = sequence(oid('2.16.840.1.101.3.4.2.1'), nothing())
const timestampInfo = oid('1.2.840.113549.1.9.16.1.4')

/** A granted response for a SHA-256 digest. */
export function timestampResponse(
  digest: Uint8Array,
  at: Date,
  signer: { issuer: Uint8Array; serial: Uint8Array; privateKey: KeyObject },
): Uint8Array {
  const written = `${at.toISOString().slice(0, 19).replace(/[-:T]/g, '')}Z`
  const info = sequence(
    ...[integer(1), oid('1.3.6.1.4.1.57264.2'), sequence(sha256, octetString(digest)), integer(1)],
    element(tags.generalizedTime, Buffer.from(written)),
  )
  const attributes = setOf(
    sequence(oid('1.2.840.113549.1.9.3'), setOf(timestampInfo)),
    sequence(oid('1.2.840.113549.1.9.4'), setOf(octetString(createHash('sha256').update(info).digest()))),
  )
  const signature = sign('sha256', attributes, signer.privateKey)
  const tagged = Buffer.from(attributes)
  tagged[0] = 0xa0
  const signedBy = sequence(
    ...[integer(1), sequence(signer.issuer, signer.serial), sha256, tagged],
    ...[sequence(oid('1.2.840.10045.4.3.2')), octetString(signature)],
  )
  const content = sequence(timestampInfo, explicit(0, octetString(info)))
  const signedData = sequence(integer(3), setOf(sha256), content, setOf(signedBy))
  return sequence(sequence(integer(0)), sequence(oid('1.2.840.113549.1.7.2'), explicit(0, signedData)))
}
