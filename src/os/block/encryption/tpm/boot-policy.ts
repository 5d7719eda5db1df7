/** The policy that the started image carries: which measurements its maker vouches for, and the key that signed them. */
import { createHash } from 'node:crypto'
import { type PcrSignature, parsePcrSignatures, parsePolicyKey } from '../../../../wire/tpm2/pcr-signatures.ts'
import type { RsaPublic } from '../../../../wire/tpm2/public-area.ts'
import type { Kernel } from '../../../kernel.ts'

type Files = Pick<Kernel['files'], 'readTextIfThere'>

/** Sections `.pcrsig` and `.pcrpkey` of the image, which the firmware's stub unpacks and stage 0 keeps. */
const signatureFile = '/run/ichor/tpm2-pcr-signature.json'
const keyFile = '/run/ichor/tpm2-pcr-public-key.pem'
const limit = 1 << 20

/** A policy for the bank of SHA-256. */
export interface BootPolicy {
  readonly key: RsaPublic
  /** What its signatures name the key by, in hexadecimal. */
  readonly fingerprint: string
  readonly signatures: readonly PcrSignature[]
}

/** The policy; undefined for an image without one. Throws DecodeError. */
export function findBootPolicy(files: Files): BootPolicy | undefined {
  const [signatures, key] = [signatureFile, keyFile].map((path) => files.readTextIfThere(path, { limit }))
  if (signatures === undefined || key === undefined) return undefined
  const { fingerprint, ...rest } = parsePolicyKey(key)
  return { key: rest, fingerprint, signatures: parsePcrSignatures(signatures).sha256 ?? [] }
}

/** SHA-256 of the key in DER form as the field writes it: `AB:CD:…`. Undefined for an image without a key. Throws DecodeError. */
export function policyKeyFingerprint(files: Files): string | undefined {
  const text = files.readTextIfThere(keyFile, { limit })
  if (text === undefined) return undefined
  const der = parsePolicyKey(text).key.export({ type: 'spki', format: 'der' })
  return [...createHash('sha256').update(der).digest()].map((byte) => byte.toString(16).toUpperCase().padStart(2, '0')).join(':')
}
