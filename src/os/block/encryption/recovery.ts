/**
 * The recovery key of a volume: a key slot that no configuration describes. Its token marks it, and holds the key encrypted to whom
 * may read it: an age file, with which the key is found again where the disk is.
 */
import * as v from 'valibot'
import { encrypt } from '../../../wire/age/file.ts'
import type { Metadata, Token } from '../../../wire/luks2/metadata.ts'
import { mostRecipients } from '../documents/disk-recovery.ts'

/** Type of the tokens of recovery keys. */
export const recoveryToken = 'ichor-recovery'

/** What a token holds besides its mark. */
export interface Escrow {
  /** The key encrypted to its recipients, an age file in ASCII; empty where there are none. */
  readonly escrow: string
  /** Whom the configuration names. A key without this was made for a person, and changes of the configuration leave it alone. */
  readonly recipients?: readonly string[] | undefined
}

/** A recovery key in a header. */
export interface RecoverySlot extends Escrow {
  readonly slot: number
}

const userData = v.object({
  UserData: v.object({
    escrow: v.pipe(v.string(), v.maxLength(4096)),
    recipients: v.optional(v.pipe(v.array(v.pipe(v.string(), v.maxLength(128))), v.maxLength(mostRecipients))),
  }),
})

/** Whether a token marks a recovery key. */
export const marksRecovery = (token: Token | undefined): boolean => token?.type === recoveryToken

/** The token of a recovery key. */
export const recoveryTokenOf = ({ escrow, recipients }: Escrow): Token => ({
  UserData: { escrow, ...(recipients && { recipients }) },
  type: recoveryToken,
  keyslots: [],
})

/** The recovery keys in a header by slot; normally there are at most two, a printed one and one for the recipients of the configuration. */
export const recoverySlots = ({ tokens, keyslots }: Metadata): RecoverySlot[] =>
  Object.entries(tokens).flatMap(([slot, token]) => {
    if (!marksRecovery(token) || !keyslots[slot]) return []
    const { success, output } = v.safeParse(userData, token)
    return { slot: Number(slot), escrow: '', ...(success && output.UserData) }
  })

/** Those of them that are for the recipients of the configuration. */
export const escrowedSlots = (metadata: Metadata): RecoverySlot[] => recoverySlots(metadata).filter(({ recipients }) => recipients)

/** A key encrypted to recipients of age, in ASCII; empty without recipients. */
export async function escrowOf(key: string, recipients: readonly Uint8Array[]): Promise<string> {
  if (recipients.length === 0) return ''
  const plain = (async function* () {
    yield Buffer.from(`${key}\n`)
  })()
  const file = Buffer.concat(await Array.fromAsync(encrypt(plain, recipients)))
  const lines = file.toString('base64').match(/.{1,64}/g) ?? []
  return ['-----BEGIN AGE ENCRYPTED FILE-----', ...lines, '-----END AGE ENCRYPTED FILE-----', ''].join('\n')
}
