/**
 * Signatures of PCR policies as unified kernel images carry them (`.pcrsig`, systemd-measure(1)): for each bank, policies and
 * their signatures. An image states in it which measurements of a start its maker vouches for.
 */
import { createHash, createPublicKey, type KeyObject, sign } from 'node:crypto'
import * as v from 'valibot'
import { DecodeError } from '../decode-error.ts'
import { type BankHash, bankHashes, pcrCount } from './constants.ts'
import type { RsaPublic } from './public-area.ts'

const mostText = 1 << 20
/** A SHA-256 digest. */
const digest = v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/))
const entry = v.object({
  pcrs: v.pipe(v.array(v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(pcrCount - 1))), v.maxLength(pcrCount)),
  pkfp: digest,
  pol: digest,
  sig: v.pipe(v.string(), v.maxLength(2048), v.base64()),
})
const entries = v.optional(v.pipe(v.array(entry), v.maxLength(256)))
const file = v.object({ sha1: entries, sha256: entries, sha384: entries, sha512: entries })

/** A signed policy. */
export type PcrSignature = v.InferOutput<typeof entry>
/** Signed policies by bank. */
export type PcrSignatures = v.InferOutput<typeof file>

/** Decodes the signatures. Throws DecodeError. */
export function parsePcrSignatures(text: string): PcrSignatures {
  if (text.length > mostText) throw new DecodeError('PCR signatures', mostText, 'they are too long')
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new DecodeError('PCR signatures', 0, 'no JSON')
  }
  const { success, output, issues } = v.safeParse(file, value)
  if (success) return output
  throw new DecodeError('PCR signatures', 0, `${v.getDotPath(issues[0]) ?? 'all of it'}: ${issues[0].message.slice(0, 200)}`)
}

/** Decodes the public key of policies (PEM). Throws DecodeError for anything but an RSA key. */
export function parsePolicyKey(text: string): RsaPublic & { readonly fingerprint: string; readonly key: KeyObject } {
  if (text.length > mostText) throw new DecodeError('PCR signing key', mostText, 'it is too long')
  let key: KeyObject | undefined
  try {
    key = createPublicKey(text)
  } catch {}
  const { n, e } = key?.asymmetricKeyType === 'rsa' ? key.export({ format: 'jwk' }) : {}
  if (!key || !n || !e) throw new DecodeError('PCR signing key', 0, 'no RSA key in PEM')
  const exponent = Buffer.from(e, 'base64url')
  const modulus = new Uint8Array(Buffer.from(n, 'base64url'))
  if (exponent.length > 4 || modulus.length > 512) throw new DecodeError('PCR signing key', 0, 'a key of a size that no TPM takes')
  return { key, modulus, exponent: exponent.readUIntBE(0, exponent.length), fingerprint: policyKeyFingerprint(key) }
}

/** The fingerprint by which signatures name their key: SHA-256 of its PKCS #1 form. */
export const policyKeyFingerprint = (key: KeyObject): string =>
  createHash('sha256')
    .update(key.export({ type: 'pkcs1', format: 'der' }))
    .digest('hex')

/** The word by which the manifest of a release declares the key that signs its policy. */
export const policyKeyWord = (fingerprint: string): string => `pcr${fingerprint.slice(0, 13)}`

/** Signs a policy for a bank. */
export function signPolicy(key: KeyObject, bank: BankHash, pcrs: readonly number[], policy: Uint8Array): PcrSignature {
  return {
    pcrs: [...pcrs],
    pkfp: policyKeyFingerprint(createPublicKey(key)),
    pol: Buffer.from(policy).toString('hex'),
    sig: sign(bank, policy, key).toString('base64'),
  }
}

/** Banks that are signed for, in the order of the file. */
export const signedBanks = (Object.keys(bankHashes) as BankHash[]).filter((bank) => bank !== 'sha1')
