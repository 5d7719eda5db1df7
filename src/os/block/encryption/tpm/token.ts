/** Tokens of keys sealed by a TPM, in the field's form. */
import * as v from 'valibot'
import { TpmReader } from '../../../../wire/tpm2/buffer.ts'
import type { Sealed } from '../../../../wire/tpm2/tpm.ts'
import { KeyError } from '../passphrase.ts'

/** A sealed key as its token describes it. */
export interface SealedKey {
  readonly sealed: Sealed
  /** PCRs whose values it is bound to, ascending; besides PCR 11, which is bound to a signature. */
  readonly pcrs: readonly number[]
  /** Digest of the policy. */
  readonly policy: Uint8Array
  /** Name of the storage root key. Tokens of older releases lack it. */
  readonly rootName?: Uint8Array | undefined
}

const mostText = 4096
const base64 = v.pipe(v.string(), v.maxLength(mostText), v.base64())
const pcrs = v.optional(v.pipe(v.array(v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(23))), v.maxLength(24)), [])
const token = v.object({
  sealed_blob_private: base64,
  sealed_blob_public: base64,
  pcrs,
  pubkey_pcrs: pcrs,
  alg: v.optional(v.literal('sha256')),
  encryption_version: v.optional(v.literal('1')),
  policy_hash: base64,
  key_name: v.optional(base64),
})

/** The PCR that older releases bound keys to without naming it. */
const unnamedPcr = 7

const sized = (bytes: Uint8Array): string => {
  const whole = Buffer.alloc(2 + bytes.length)
  whole.writeUInt16BE(bytes.length)
  whole.set(bytes, 2)
  return whole.toString('base64')
}

/** Encodes a token for a slot. */
export const writeToken = ({ sealed, pcrs, policy, rootName }: SealedKey, slot: number): Record<string, unknown> => ({
  keyslots: [slot],
  sealed_blob_private: sized(sealed.privatePart),
  sealed_blob_public: sized(sealed.publicPart),
  ...(pcrs.length > 0 && { pcrs }),
  pubkey_pcrs: [11],
  alg: 'sha256',
  encryption_version: '1',
  policy_hash: Buffer.from(policy).toString('base64'),
  ...(rootName && { key_name: sized(rootName) }),
})

/** Decodes a token. Throws KeyError, for what is no buffer of a TPM DecodeError. */
export function readToken(data: Readonly<Record<string, unknown>>): SealedKey {
  const { success, output, issues } = v.safeParse(token, data)
  if (!success) throw new KeyError(`its token in the header cannot be read: ${v.getDotPath(issues[0]) ?? 'all of it'}`)
  const buffer = (text: string) => {
    const reader = new TpmReader(Buffer.from(text, 'base64'), 'token of a sealed key')
    const bytes = reader.sized()
    reader.end()
    return bytes
  }
  const isOld = output.encryption_version === undefined && output.pubkey_pcrs.length === 0
  if (!isOld && (output.pubkey_pcrs.length !== 1 || output.pubkey_pcrs[0] !== 11))
    throw new KeyError(`its token binds it to a signature of the PCRs ${output.pubkey_pcrs.join(', ') || 'none'}, only PCR 11 is supported`)
  return {
    sealed: { privatePart: buffer(output.sealed_blob_private), publicPart: buffer(output.sealed_blob_public) },
    pcrs: isOld ? [unnamedPcr] : output.pcrs,
    policy: new Uint8Array(Buffer.from(output.policy_hash, 'base64')),
    ...(output.key_name !== undefined && { rootName: buffer(output.key_name) }),
  }
}
