/** Trusted roots of Sigstore (github.com/sigstore/protobuf-specs, sigstore_trustroot.proto, in the JSON of protobuf). */
import { TrustedRoot } from '@sigstore/protobuf-specs'
import { type TrustMaterial, toTrustMaterial } from '@sigstore/verify'

/** The keys and certificates of a trusted root in JSON. Throws TypeError. */
export function trustMaterialOf(json: string): TrustMaterial {
  try {
    return toTrustMaterial(TrustedRoot.fromJSON(JSON.parse(json)))
  } catch (error) {
    throw new TypeError('the trusted root is damaged', { cause: error })
  }
}
