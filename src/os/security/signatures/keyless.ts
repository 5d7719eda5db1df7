/**
 * Keyless signatures of Sigstore: the key is in a certificate that Fulcio issued for minutes to an identity, and a transparency
 * log or an authority for time proves that the signature was made meanwhile. `@sigstore/verify` verifies the certificate, its
 * entry in a log of certificates, the entry of the signature, the time and the signature; the rest is verified here.
 */
import { createHash } from 'node:crypto'
import { bundleFromJSON } from '@sigstore/bundle'
import { type TrustMaterial, toSignedEntity, VerificationError, Verifier } from '@sigstore/verify'
import { DecodeError } from '../../../wire/decode-error.ts'
import { PatternError } from '../../../wire/re2/parse.ts'
import { Re2 } from '../../../wire/re2/re2.ts'
import type { FoundSignature } from './beside-image.ts'
import { parseBundle, type SigstoreBundle, signedContent } from './bundle.ts'
import { type CertificateIdentity, decodeIdentity } from './certificate-identity.ts'
import { parseLogged } from './log-entry.ts'
import type { SignedImage } from './public-key.ts'
import { SignatureError } from './signature-error.ts'
import { parseLayer } from './simple-signing.ts'

/** Whose signatures a rule accepts. */
export interface AcceptedIdentity {
  readonly issuer: string
  readonly subject: string | undefined
  /** Part of the subject fits it. */
  readonly pattern: Re2 | undefined
}

/** The identity that a rule names. Throws TypeError for a rule that is incomplete or has an invalid expression. */
export function acceptedIdentity(rule: {
  issuer: string
  subject?: string | undefined
  subjectRegex?: string | undefined
}): AcceptedIdentity {
  const { issuer, subject, subjectRegex } = rule
  if (!issuer || (!subject && !subjectRegex)) throw new TypeError('the rule names no issuer, or no subject')
  try {
    return { issuer, subject: subject || undefined, pattern: subjectRegex ? new Re2(subjectRegex) : undefined }
  } catch (error) {
    if (error instanceof PatternError) throw new TypeError(`subjectRegex: ${error.message}`, { cause: error })
    throw error
  }
}

/** Verifies that a signature is one of the image by an accepted identity. Throws SignatureError. */
export async function verifyKeyless(
  found: FoundSignature,
  image: SignedImage,
  accepted: AcceptedIdentity,
  trust: TrustMaterial,
): Promise<void> {
  try {
    const { bundle, certificate, bodies, signed } = await evidenceOf(found, image)
    for (const body of bodies) {
      const { certificates } = parseLogged(body)
      if (certificates.length === 0 || certificates.some((each) => !certificate.equals(each)))
        throw new SignatureError('its entry in the transparency log is of another certificate')
    }
    verifyEvidence(bundle, signed, trust)
    verifyIdentity(decodeIdentity(certificate), accepted)
  } catch (error) {
    if (error instanceof DecodeError) throw new SignatureError('its certificate is damaged')
    throw error
  }
}

/** What a signature comes with, as a bundle in JSON for the package. */
interface Evidence {
  readonly bundle: unknown
  readonly certificate: Buffer
  /** Of the entries in transparency logs. */
  readonly bodies: readonly Uint8Array[]
  readonly signed: Buffer | undefined
}

async function evidenceOf(found: FoundSignature, image: SignedImage): Promise<Evidence> {
  if (found.kind === 'payload') return layerEvidence(found, image.digest)
  const bundle = parseBundle(found.bytes)
  const { certificate, tlogEntries } = bundle.verificationMaterial
  if (!certificate) throw new SignatureError('a bundle of it has no certificate')
  const bodies = (tlogEntries ?? []).map(({ canonicalizedBody }) => Buffer.from(canonicalizedBody, 'base64'))
  if (bodies.length === 0) throw new SignatureError('it has no entry in a transparency log')
  const { signed } = signedContent(bundle, image.digest)
  return {
    bundle: withoutNull(bundle),
    certificate: Buffer.from(certificate.rawBytes, 'base64'),
    bodies,
    // Of an envelope the package makes the signed bytes itself.
    signed: signed ? undefined : Buffer.from(await image.manifest()),
  }
}

/** Null stands for absent in the JSON of protobuf, but not for the package. */
const withoutNull = (bundle: SigstoreBundle): unknown => JSON.parse(JSON.stringify(bundle), (_, value) => value ?? undefined)

function layerEvidence({ bytes, annotations }: FoundSignature, digest: string): Evidence {
  const { certificate, signature, entry, timestamp } = parseLayer(bytes, annotations, digest)
  const { kind, version } = parseLogged(entry.body)
  const bundle = {
    mediaType: 'application/vnd.dev.sigstore.bundle+json;version=0.1',
    verificationMaterial: {
      x509CertificateChain: { certificates: [{ rawBytes: certificate.toString('base64') }] },
      tlogEntries: [
        {
          logIndex: String(entry.logIndex),
          logId: { keyId: entry.logId.toString('base64') },
          kindVersion: { kind, version },
          integratedTime: String(entry.integratedTime),
          inclusionPromise: { signedEntryTimestamp: entry.promise },
          canonicalizedBody: entry.body.toString('base64'),
        },
      ],
      timestampVerificationData: { rfc3161Timestamps: timestamp ? [{ signedTimestamp: timestamp }] : [] },
    },
    messageSignature: {
      messageDigest: { algorithm: 'SHA2_256', digest: createHash('sha256').update(bytes).digest('base64') },
      signature,
    },
  }
  return { bundle, certificate, bodies: [entry.body], signed: Buffer.from(bytes) }
}

function verifyEvidence(bundle: unknown, signed: Buffer | undefined, trust: TrustMaterial): void {
  try {
    const verifier = new Verifier(trust, { ctlogThreshold: 1, tlogThreshold: 1, timestampThreshold: 1 })
    verifier.verify(toSignedEntity(bundleFromJSON(bundle), signed))
  } catch (error) {
    // Besides its own errors the package throws those of the runtime for bytes that it cannot decode.
    throw new SignatureError(error instanceof VerificationError ? reasonOf(error) : 'its certificate or timestamp is damaged')
  }
}

function reasonOf({ code }: VerificationError): string {
  switch (code) {
    case 'CERTIFICATE_ERROR':
      return 'its certificate is of no trusted authority, was not valid when the image was signed, or is in no trusted log of certificates'
    case 'TIMESTAMP_ERROR':
      return 'the time at which it was signed is not proven'
    case 'SIGNATURE_ERROR':
      return 'a signature of it is not of its certificate’s key'
    default:
      return 'its entry in the transparency log is of no trusted log, of another signature or not proven'
  }
}

/** A subject of more characters than any identity has is not searched by an expression. */
const maxSubject = 2048

function verifyIdentity({ issuer, subjects, forCode }: CertificateIdentity, accepted: AcceptedIdentity): void {
  if (!forCode) throw new SignatureError('its certificate is not one for signatures of code')
  const fits = (subject: string) =>
    subject.length <= maxSubject &&
    (accepted.subject === undefined || subject === accepted.subject) &&
    (accepted.pattern === undefined || accepted.pattern.test(subject))
  if (issuer === accepted.issuer && subjects.some(fits)) return
  const quoted = (text: string) => JSON.stringify(text.slice(0, 300))
  throw new SignatureError(`it is signed by ${quoted(subjects.join(', '))} of the issuer ${quoted(issuer)}, whom the rule does not name`)
}
