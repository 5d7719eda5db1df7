/** Signatures by a key that a rule names. Neither a certificate nor a log takes part. */
import { createPublicKey, type KeyObject, verify, X509Certificate } from 'node:crypto'
import type { FoundSignature } from './beside-image.ts'
import { parseBundle, signedContent } from './bundle.ts'
import { SignatureError } from './signature-error.ts'
import { layerSignature } from './simple-signing.ts'

/** The image whose signatures are verified. */
export interface SignedImage {
  readonly digest: string
  /** Its manifest, which few signatures are of. */
  manifest(): Promise<Uint8Array>
}

/** The public key in a PEM text, which may be a certificate. Throws TypeError. */
export function verifierKey(pem: string): KeyObject {
  try {
    return pem.includes('BEGIN CERTIFICATE') ? new X509Certificate(pem).publicKey : createPublicKey(pem)
  } catch {
    throw new TypeError('the rule has neither a public key nor a certificate in PEM')
  }
}

/** Verifies that a signature is one of the image by the key. Throws SignatureError. */
export async function verifyByKey(found: FoundSignature, image: SignedImage, key: KeyObject): Promise<void> {
  const { signed, signature } = await contentOf(found, image)
  if (signature.length === 0 || !isSignedBy(key, signed, signature)) throw new SignatureError('a signature of it is not of the rule’s key')
}

async function contentOf(found: FoundSignature, image: SignedImage): Promise<{ signed: Uint8Array; signature: Uint8Array }> {
  if (found.kind === 'payload') {
    const signature = layerSignature(found.bytes, found.annotations, image.digest)
    return { signed: found.bytes, signature: Buffer.from(signature, 'base64') }
  }
  const bundle = parseBundle(found.bytes)
  if (bundle.verificationMaterial.certificate) throw new SignatureError('a bundle of it has a certificate instead of the rule’s key')
  const { signed = await image.manifest(), signature } = signedContent(bundle, image.digest)
  return { signed, signature }
}

/** Whether this is a signature of the bytes by the key; SHA-256 unless the key type has its own digest. */
function isSignedBy(key: KeyObject, bytes: Uint8Array, signature: Uint8Array): boolean {
  try {
    return verify(key.asymmetricKeyType === 'ed25519' ? null : 'sha256', bytes, key, signature)
  } catch {
    return false
  }
}
