/**
 * Image signatures in cosign's layout: a manifest under the tag `sha256-<digest>.sig` beside the image. Its layers are the
 * signed payloads and their annotations hold the signatures.
 */
import { createPublicKey, type KeyObject, verify, X509Certificate } from 'node:crypto'
import * as v from 'valibot'
import { parseImageDocument } from '../../oci/image-document.ts'
import type { Reference } from '../../oci/reference.ts'
import { RegistryError, type RemoteRegistry } from '../../oci/remote-registry.ts'

const payloadType = 'application/vnd.dev.cosign.simplesigning.v1+json'
const signatureAnnotation = 'dev.cosignproject.cosign/signature'
const maxSignatures = 100
const maxPayload = 1 << 20

/** The public key in a PEM text, which may be a certificate. Throws TypeError. */
export function verifierKey(pem: string): KeyObject {
  try {
    return pem.includes('BEGIN CERTIFICATE') ? new X509Certificate(pem).publicKey : createPublicKey(pem)
  } catch {
    throw new TypeError('the rule has neither a public key nor a certificate in PEM')
  }
}

/** Whether a signature beside the image with this digest was made with the key, with the reason if not. Throws RegistryError. */
export async function signedBy(
  registry: Pick<RemoteRegistry, 'manifest' | 'smallBlob'>,
  { domain, repository }: Reference,
  digest: string,
  key: KeyObject,
): Promise<{ signed: true } | { signed: false; reason: string }> {
  const beside: Reference = { domain, repository, tag: `${digest.replace(':', '-')}.sig` }
  let bytes: Uint8Array
  try {
    bytes = (await registry.manifest(beside)).bytes
  } catch (error) {
    if (error instanceof RegistryError && error.reason === 'missing') return { signed: false, reason: 'it is not signed' }
    throw error
  }
  const manifest = parseImageDocument(Buffer.from(bytes).toString())
  if (!manifest) return { signed: false, reason: 'its signature is no manifest of an image' }
  const layers = (manifest.layers ?? []).filter(({ mediaType }) => mediaType === payloadType).slice(0, maxSignatures)
  for (const { digest: payloadDigest, annotations } of layers) {
    const signature = Buffer.from(annotations?.[signatureAnnotation] ?? '', 'base64')
    if (signature.length === 0) continue
    const payload = await registry.smallBlob(beside, payloadDigest, maxPayload)
    if (isSignedBy(key, payload, signature) && digestOf(payload) === digest) return { signed: true }
  }
  return { signed: false, reason: layers.length === 0 ? 'it is not signed' : 'none of its signatures is of the rule’s key' }
}

/** Whether this is a signature of the bytes by the key; SHA-256 unless the key type has its own digest. */
export function isSignedBy(key: KeyObject, bytes: Uint8Array, signature: Uint8Array): boolean {
  try {
    return verify(key.asymmetricKeyType === 'ed25519' ? null : 'sha256', bytes, key, signature)
  } catch {
    return false
  }
}

/** A payload of "simple signing": a signature of the same key for another purpose is none of the image. */
const signedText = v.object({
  critical: v.object({
    image: v.object({ 'docker-manifest-digest': v.string() }),
    type: v.literal('cosign container image signature'),
  }),
})

/** The image that a signed payload names; empty when it is no payload of an image signature. */
function digestOf(payload: Uint8Array): string {
  try {
    return v.parse(signedText, JSON.parse(Buffer.from(payload).toString())).critical.image['docker-manifest-digest']
  } catch {
    return ''
  }
}
