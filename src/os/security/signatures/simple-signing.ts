/**
 * The older layout of cosign: a manifest under the tag `sha256-<digest>.sig`. Its layers are the signed payloads ("simple
 * signing"), and the annotations of a layer hold the signature, the certificate and the entry of the log.
 */
import * as v from 'valibot'

/** Media type of a layer that is a payload. */
export const payloadType = 'application/vnd.dev.cosign.simplesigning.v1+json'
/** Maximum size of a payload in bytes. */
export const maxPayload = 1 << 20

/** A payload: a signature of the same key for another purpose is none of the image. */
const payload = v.object({
  critical: v.object({
    image: v.object({ 'docker-manifest-digest': v.string() }),
    type: v.literal('cosign container image signature'),
  }),
})

/** The digest of the image that a payload names; undefined when it is no payload of an image signature. */
export function parsePayload(input: Uint8Array): string | undefined {
  try {
    return v.parse(payload, JSON.parse(Buffer.from(input).toString())).critical.image['docker-manifest-digest']
  } catch {
    return undefined
  }
}
