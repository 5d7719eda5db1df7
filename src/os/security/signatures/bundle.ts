/**
 * Bundles of Sigstore, version 0.3 (github.com/sigstore/protobuf-specs, sigstore_bundle.proto, in the JSON of protobuf): a
 * signature with everything that is needed to verify it. They come from registries, so every part is bounded.
 */
import * as v from 'valibot'
import { jsonOf } from './json-of.ts'
import { SignatureError } from './signature-error.ts'

/** Prefix of the media types of bundles, also of the artifact types of manifests that hold one. */
export const bundleType = 'application/vnd.dev.sigstore.bundle'
/** Maximum size of a bundle in bytes. */
export const maxBundle = 1 << 20
/** Maximum size of a certificate in bytes; those of Fulcio have about 2 KiB. */
export const maxCertificate = 16 << 10

const maybe = <T extends v.GenericSchema>(schema: T) => v.optional(v.nullable(schema))
/** At most so many bytes in base64. */
const bytes = (limit: number) => v.pipe(v.string(), v.maxLength(Math.ceil(limit / 3) * 4), v.regex(/^[A-Za-z0-9+/_-]*={0,2}$/))
const digits = v.union([v.pipe(v.string(), v.regex(/^\d{1,19}$/)), v.pipe(v.number(), v.safeInteger(), v.minValue(0))])
const fewer = <T extends v.GenericSchema>(schema: T, limit: number) => v.optional(v.nullable(v.pipe(v.array(schema), v.maxLength(limit))))

const logEntry = v.object({
  logIndex: maybe(digits),
  logId: v.object({ keyId: bytes(64) }),
  kindVersion: v.object({ kind: v.string(), version: v.string() }),
  integratedTime: maybe(digits),
  inclusionPromise: maybe(v.object({ signedEntryTimestamp: bytes(1024) })),
  inclusionProof: v.object({
    logIndex: v.optional(digits, '0'),
    rootHash: bytes(64),
    treeSize: digits,
    hashes: fewer(bytes(64), 64),
    // The signatures of witnesses are among its lines.
    checkpoint: v.object({ envelope: v.pipe(v.string(), v.maxLength(16 << 10)) }),
  }),
  canonicalizedBody: bytes(maxBundle),
})

const bundle = v.object({
  mediaType: v.picklist([`${bundleType}.v0.3+json`, `${bundleType}+json;version=0.3`]),
  verificationMaterial: v.object({
    certificate: maybe(v.object({ rawBytes: bytes(maxCertificate) })),
    publicKey: maybe(v.object({ hint: maybe(v.string()) })),
    tlogEntries: fewer(logEntry, 8),
    timestampVerificationData: maybe(v.object({ rfc3161Timestamps: fewer(v.object({ signedTimestamp: bytes(32 << 10) }), 8) })),
  }),
  messageSignature: maybe(
    v.object({ messageDigest: v.object({ algorithm: v.literal('SHA2_256'), digest: bytes(32) }), signature: bytes(4096) }),
  ),
  dsseEnvelope: maybe(
    v.object({
      payload: bytes(maxBundle),
      payloadType: v.literal('application/vnd.in-toto+json'),
      signatures: v.pipe(v.array(v.object({ sig: bytes(4096), keyid: maybe(v.string()) })), v.length(1)),
    }),
  ),
})

/** A bundle, with bytes in base64; fields that take no part in a verification are left out. */
export type SigstoreBundle = v.InferOutput<typeof bundle>

/** An entry of a transparency log. */
export type LogEntry = v.InferOutput<typeof logEntry>

const statement = v.object({
  _type: v.picklist(['https://in-toto.io/Statement/v0.1', 'https://in-toto.io/Statement/v1']),
  subject: v.pipe(v.array(v.object({ digest: v.optional(v.record(v.string(), v.string())) })), v.maxLength(1000)),
})

/** Decodes a bundle. Throws SignatureError for anything else and for one that is too large. */
export function parseBundle(input: Uint8Array): SigstoreBundle {
  if (input.length > maxBundle) throw new SignatureError(`a bundle has more than ${maxBundle} bytes`)
  const { success, output } = v.safeParse(bundle, jsonOf(input))
  if (!success) throw new SignatureError('a bundle of it is damaged, not of version 0.3 or with content that is no statement about images')
  return output
}

/** What of a bundle is signed, and the signature. */
export interface SignedContent {
  /** The bytes that the signature is of; undefined: the manifest of the image itself. */
  readonly signed: Buffer | undefined
  readonly signature: Buffer
}

/** The content of a bundle about the image with this digest. Throws SignatureError when it is about another one. */
export function signedContent({ messageSignature, dsseEnvelope }: SigstoreBundle, digest: string): SignedContent {
  if (dsseEnvelope && !messageSignature) {
    const { payloadType, signatures } = dsseEnvelope
    const payload = decoded(dsseEnvelope.payload)
    if (!parseStatement(payload).includes(digest)) throw new SignatureError('a bundle of it is about another image')
    const signed = Buffer.concat([Buffer.from(`DSSEv1 ${payloadType.length} ${payloadType} ${payload.length} `), payload])
    return { signed, signature: decoded(signatures[0]?.sig ?? '') }
  }
  if (messageSignature && !dsseEnvelope) {
    const { messageDigest, signature } = messageSignature
    if (`sha256:${decoded(messageDigest.digest).toString('hex')}` !== digest)
      throw new SignatureError('a bundle of it is about another image')
    return { signed: undefined, signature: decoded(signature) }
  }
  throw new SignatureError('a bundle of it has not exactly one signature')
}

/** The digests, as `algorithm:hex`, that an in-toto statement is about; empty for anything else. */
export function parseStatement(payload: Uint8Array): string[] {
  const { success, output } = v.safeParse(statement, jsonOf(payload))
  if (!success) return []
  return output.subject.flatMap(({ digest = {} }) => Object.entries(digest).map(([algorithm, hex]) => `${algorithm}:${hex}`))
}

const decoded = (base64: string) => Buffer.from(base64, 'base64')
