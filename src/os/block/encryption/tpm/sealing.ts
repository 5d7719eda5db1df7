/**
 * Keys that the TPM of the machine seals: it unseals them on this machine only, only for an image whose measurements the maker of
 * the running one signed, and only with the values that further PCRs had when the key was sealed.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { DecodeError } from '../../../../wire/decode-error.ts'
import { pcrCount } from '../../../../wire/tpm2/constants.ts'
import { type PcrSelection, policyAuthorizeDigest, policyPcrDigest, sortedPcrs } from '../../../../wire/tpm2/pcr.ts'
import { nameOf, policyKeyPublic } from '../../../../wire/tpm2/public-area.ts'
import { TpmError } from '../../../../wire/tpm2/response-code.ts'
import { type Session, SessionError } from '../../../../wire/tpm2/session.ts'
import type { Loaded, Tpm } from '../../../../wire/tpm2/tpm.ts'
import { isSecureBoot } from '../../../hardware/public.ts'
import type { Kernel } from '../../../kernel.ts'
import { KeyError } from '../passphrase.ts'
import type { SealedKind } from '../sealed-kind.ts'
import { type BootPolicy, findBootPolicy } from './boot-policy.ts'
import { readToken, type SealedKey, writeToken } from './token.ts'
import { imagePcr, type TpmWindow } from './tpm-window.ts'

const selectionOf = (pcrs: readonly number[]): PcrSelection => ({ bank: 'sha256', pcrs })

/** Keys of type `tpm`. */
export const tpmKeys = (window: TpmWindow, files: Kernel['files']): SealedKind => ({
  token: 'talos-tpm2',

  seal: (secret, { key, slot }) =>
    translated(async () => {
      const policy = bootPolicy(files)
      if (key.tpmCheckSecurebootStatusOnEnroll && !isSecureBoot(files))
        throw new KeyError('it is added with Secure Boot only, which is off or in setup mode')
      const sealed = await window.use((tpm) => seal(tpm, policy, sortedPcrs(key.pcrs ?? []), secret))
      return writeToken(sealed, slot)
    }),

  isCurrent: (data, { pcrs = [] }) => String(sortedPcrs(readToken(data).pcrs)) === String(sortedPcrs(pcrs)),

  unseal: (data) => translated(() => window.use((tpm) => unseal(tpm, bootPolicy(files), readToken(data)))),
})

function bootPolicy(files: Kernel['files']): BootPolicy {
  const policy = findBootPolicy(files)
  if (policy) return policy
  throw new KeyError('the running image has no signed PCR policy: start an image that was made with "--pcr-key" by UEFI')
}

/** Failures of the TPM as those of the key. */
async function translated<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    if (error instanceof TpmError || error instanceof SessionError || error instanceof DecodeError)
      throw new KeyError(error.message, { cause: error })
    throw error
  }
}

/** Seals a key and unseals it once, so that no key is added that the next start with the same measurements would not get. */
async function seal(tpm: Tpm, boot: BootPolicy, pcrs: readonly number[], secret: Uint8Array): Promise<SealedKey> {
  await requireMeasured(tpm, [imagePcr, ...pcrs])
  const authorized = policyAuthorizeDigest(nameOf(policyKeyPublic(boot.key)))
  const selection = selectionOf(pcrs)
  const policy = pcrs.length > 0 ? policyPcrDigest(authorized, selection, await valuesOf(tpm, pcrs)) : authorized
  const sealed = await withRoot(tpm, (root) =>
    withSession(tpm, 'hmac', root, async (session) => ({
      sealed: await tpm.seal(root, session, secret, policy),
      ...{ pcrs, policy, rootName: root.name },
    })),
  )
  const restored = await unseal(tpm, boot, sealed)
  if (restored.length === secret.length && timingSafeEqual(restored, secret)) return sealed
  throw new KeyError('the TPM does not return what it sealed')
}

/** Unseals a key. */
async function unseal(tpm: Tpm, boot: BootPolicy, { sealed, pcrs, policy, rootName }: SealedKey): Promise<Uint8Array> {
  await requireMeasured(tpm, [imagePcr, ...pcrs])
  return withRoot(tpm, async (root) => {
    if (rootName && Buffer.compare(root.name, rootName) !== 0)
      throw new KeyError('it was sealed by another TPM, or this one was cleared since', { stale: true })
    return withFlushed(tpm, await tpm.load(root, sealed), (object) =>
      withSession(tpm, 'policy', root, async (session) => {
        await satisfyImage(tpm, session, boot)
        if (pcrs.length > 0) await tpm.policyPcr(session, selectionOf(sortedPcrs(pcrs)))
        if (Buffer.compare(await tpm.policyDigest(session), policy) !== 0)
          throw new KeyError(
            `${pcrs.length > 0 ? `PCR ${pcrs.join(', ')} changed since it was sealed ("talosctl measurements" shows by what), or ` : ''}the running image is signed with another PCR key`,
            { stale: true },
          )
        return tpm.unseal(object, session)
      }),
    )
  })
}

/** Replaces the current PCR 11 in the policy of a session by the key that signed it. */
async function satisfyImage(tpm: Tpm, session: Session, { key, fingerprint, signatures }: BootPolicy): Promise<void> {
  await tpm.policyPcr(session, selectionOf([imagePcr]))
  const approved = await tpm.policyDigest(session)
  const digest = Buffer.from(approved).toString('hex')
  const signature = signatures.find(({ pol, pkfp }) => pol === digest && pkfp === fingerprint)
  if (!signature)
    throw new KeyError(`PCR ${imagePcr} is not what the signatures in the running image are for: it was started in another way`)
  await withFlushed(tpm, await tpm.loadPolicyKey(key), async (loaded) => {
    const hashed = createHash('sha256').update(approved).digest()
    const ticket = await tpm.verify(loaded, hashed, Buffer.from(signature.sig, 'base64'))
    await tpm.policyAuthorize(session, approved, loaded.name, ticket)
  })
}

/** PCRs that nothing extended protect nothing: any program could bring them into the same state. */
async function requireMeasured(tpm: Tpm, pcrs: readonly number[]): Promise<void> {
  const bank = (await tpm.pcrBanks()).find((each) => each.bank === 'sha256')
  if (bank?.pcrs.length !== pcrCount) throw new KeyError('the TPM has no whole bank of SHA-256 PCRs: switch it on in the firmware')
  const values = await tpm.readPcrs('sha256', pcrs)
  for (const [pcr, value] of values)
    if (value.every((byte) => byte === 0) || value.every((byte) => byte === 0xff))
      throw new KeyError(`PCR ${pcr} was never extended: the firmware does not measure`)
}

const valuesOf = async (tpm: Tpm, pcrs: readonly number[]): Promise<Uint8Array[]> => {
  const values = await tpm.readPcrs('sha256', pcrs)
  return pcrs.flatMap((pcr) => values.get(pcr) ?? [])
}

const withRoot = async <T>(tpm: Tpm, run: (root: Loaded) => Promise<T>): Promise<T> => withFlushed(tpm, await tpm.createStorageRoot(), run)

const withSession = async <T>(tpm: Tpm, kind: 'hmac' | 'policy', root: Loaded, run: (session: Session) => Promise<T>): Promise<T> =>
  withFlushed(tpm, await tpm.startSession(kind, root), run)

async function withFlushed<T, H extends { readonly handle: number }>(tpm: Tpm, held: H, run: (held: H) => Promise<T>): Promise<T> {
  try {
    return await run(held)
  } finally {
    await tpm.flush(held.handle)
  }
}
