/**
 * The older layout of cosign: a manifest under the tag `sha256-<digest>.sig`. Its layers are the signed payloads ("simple
 * signing"), and the annotations of a layer hold the signature, the certificate and the entry of the log (cosign,
 * specs/SIGNATURE_SPEC.md).
 */
import * as v from 'valibot'
import { pemBlock, pemLabels } from '../../../wire/pem.ts'
import { maxCertificate } from './bundle.ts'
import { jsonOf } from './json-of.ts'
import { SignatureError } from './signature-error.ts'

/** Media type of a layer that is a payload. */
export const payloadType = 'application/vnd.dev.cosign.simplesigning.v1+json'
/** Maximum size of a payload in bytes. */
export const maxPayload = 1 << 20

const annotationNames = {
  signature: 'dev.cosignproject.cosign/signature',
  certificate: 'dev.sigstore.cosign/certificate',
  entry: 'dev.sigstore.cosign/bundle',
  timestamp: 'dev.sigstore.cosign/rfc3161timestamp',
} as const

/** A payload: a signature of the same key for another purpose is none of the image. */
const payload = v.object({
  critical: v.object({
    image: v.object({ 'docker-manifest-digest': v.string() }),
    type: v.literal('cosign container image signature'),
  }),
})

const base64 = (limit: number) => v.pipe(v.string(), v.maxLength(limit), v.regex(/^[A-Za-z0-9+/]*={0,2}$/))
const count = v.pipe(v.number(), v.safeInteger(), v.minValue(0))

const logEntry = v.object({
  SignedEntryTimestamp: base64(1024),
  Payload: v.object({
    body: base64(2 << 20),
    integratedTime: count,
    logIndex: count,
    logID: v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/)),
  }),
})

const timestamp = v.object({ SignedRFC3161Timestamp: base64(64 << 10) })

/** A keyless signature of this layout. */
export interface SignedLayer {
  /** DER. */
  readonly certificate: Buffer
  /** Base64. */
  readonly signature: string
  /** The entry in the transparency log, with the promise in base64. */
  readonly entry: {
    readonly body: Buffer
    readonly integratedTime: number
    readonly logIndex: number
    readonly logId: Buffer
    readonly promise: string
  }
  /** A response of an authority for time (RFC 3161), in base64. */
  readonly timestamp: string | undefined
}

/** The digest of the image that a payload names; undefined when it is no payload of an image signature. */
export function parsePayload(input: Uint8Array): string | undefined {
  return parsed(payload, Buffer.from(input).toString())?.critical.image['docker-manifest-digest']
}

/** The signature in the annotations of a payload about the image with this digest, empty when there is none. Throws SignatureError. */
export function layerSignature(input: Uint8Array, annotations: FoundAnnotations, digest: string): string {
  if (parsePayload(input) !== digest) throw new SignatureError('a signature of it is about another image')
  return annotations[annotationNames.signature] ?? ''
}

/** Annotations of a layer. */
export type FoundAnnotations = Readonly<Record<string, string>>

/** Decodes a keyless signature of the image with this digest. Throws SignatureError and, for its certificate, DecodeError. */
export function parseLayer(input: Uint8Array, annotations: FoundAnnotations, digest: string): SignedLayer {
  const signature = layerSignature(input, annotations, digest)
  const certificate = annotations[annotationNames.certificate]
  if (!signature || !certificate) throw new SignatureError('a signature of it has no certificate')
  if (certificate.length > 2 * maxCertificate) throw new SignatureError('its certificate is too large')
  const entryText = annotations[annotationNames.entry]
  if (!entryText) throw new SignatureError('it has no entry in a transparency log')
  const entry = parsed(logEntry, entryText)
  if (!entry) throw new SignatureError('its entry in the transparency log is damaged')
  const timestampText = annotations[annotationNames.timestamp]
  const time = timestampText ? parsed(timestamp, timestampText) : undefined
  if (timestampText && !time) throw new SignatureError('its timestamp is damaged')
  const { body, integratedTime, logIndex, logID } = entry.Payload
  return {
    certificate: Buffer.from(pemBlock(certificate, pemLabels.certificate).der),
    signature,
    entry: {
      body: Buffer.from(body, 'base64'),
      integratedTime,
      logIndex,
      logId: Buffer.from(logID, 'hex'),
      promise: entry.SignedEntryTimestamp,
    },
    timestamp: time?.SignedRFC3161Timestamp,
  }
}

/** Undefined for text that is no JSON of the schema. */
function parsed<T extends v.GenericSchema>(schema: T, text: string): v.InferOutput<T> | undefined {
  const { success, output } = v.safeParse(schema, jsonOf(text))
  return success ? output : undefined
}
