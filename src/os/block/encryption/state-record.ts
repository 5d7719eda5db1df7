/**
 * The encryption of STATE in META (tag 9), in the field's form: without it STATE could not be opened, since the configuration that
 * describes it lies on STATE itself. Passphrases in it can be read from the disk; the field accepts that too.
 */
import * as v from 'valibot'
import type { Encryption, EncryptionKey } from './passphrase.ts'

const integer = v.pipe(v.number(), v.integer())
const key = v.object({
  KeySlot: integer,
  KeyStatic: v.nullish(v.object({ KeyData: v.string() })),
  KeyNodeID: v.nullish(v.object({})),
  KeyKMS: v.nullish(v.object({ KMSEndpoint: v.string() })),
  KeyTPM: v.nullish(
    v.object({
      TPMOptions: v.nullish(v.object({ PCRs: v.nullish(v.array(integer)) })),
      TPMCheckSecurebootStatusOnEnroll: v.nullish(v.boolean()),
    }),
  ),
  KeyLockToSTATE: v.nullish(v.boolean()),
})
const record = v.nullable(
  v.object({
    EncryptionProvider: v.string(),
    EncryptionKeys: v.nullish(v.array(key), []),
    EncryptionCipher: v.nullish(v.string()),
    EncryptionKeySize: v.nullish(integer),
    EncryptionBlockSize: v.nullish(integer),
    EncryptionPerfOptions: v.nullish(v.array(v.string())),
  }),
)

/** What is recorded for a STATE that is not encrypted. */
export const plainState = 'null'

/** Encodes the encryption of STATE. */
export function writeStateRecord({ provider, keys, cipher, keySize, blockSize, perfOptions }: Encryption): string {
  return JSON.stringify({
    EncryptionProvider: provider,
    EncryptionKeys: keys.map(({ slot, type, staticPassphrase = '', kmsEndpoint = '', lockToState = false, ...tpm }) => ({
      KeySlot: slot,
      KeyStatic: type === 'static' ? { KeyData: staticPassphrase } : null,
      KeyNodeID: type === 'nodeID' ? {} : null,
      KeyKMS: type === 'kms' ? { KMSEndpoint: kmsEndpoint } : null,
      KeyTPM:
        type === 'tpm'
          ? {
              TPMOptions: tpm.pcrs ? { PCRs: tpm.pcrs } : null,
              TPMCheckSecurebootStatusOnEnroll: tpm.tpmCheckSecurebootStatusOnEnroll ?? false,
            }
          : null,
      KeyLockToSTATE: lockToState,
    })),
    EncryptionCipher: cipher ?? '',
    EncryptionKeySize: keySize ?? 0,
    EncryptionBlockSize: blockSize ?? 0,
    EncryptionPerfOptions: perfOptions ?? null,
  })
}

/** Decodes it; undefined for a STATE that is not encrypted. Throws v.ValiError or SyntaxError. */
export function readStateRecord(text: string): Encryption | undefined {
  const found = v.parse(record, JSON.parse(text))
  if (!found) return undefined
  return {
    // An empty provider marks the older form of the configuration.
    provider: found.EncryptionProvider || 'luks2',
    keys: (found.EncryptionKeys ?? []).map(keyOf),
    ...(found.EncryptionCipher && { cipher: found.EncryptionCipher }),
    ...(found.EncryptionKeySize && { keySize: found.EncryptionKeySize }),
    ...(found.EncryptionBlockSize && { blockSize: found.EncryptionBlockSize }),
    ...(found.EncryptionPerfOptions && { perfOptions: found.EncryptionPerfOptions }),
  }
}

function keyOf({ KeySlot, KeyStatic, KeyNodeID, KeyKMS, KeyTPM, KeyLockToSTATE }: v.InferOutput<typeof key>): EncryptionKey {
  const rest = { slot: KeySlot, ...(KeyLockToSTATE && { lockToState: true }) }
  if (KeyStatic) return { ...rest, type: 'static', staticPassphrase: KeyStatic.KeyData }
  if (KeyNodeID) return { ...rest, type: 'nodeID' }
  if (KeyKMS) return { ...rest, type: 'kms', kmsEndpoint: KeyKMS.KMSEndpoint }
  return {
    ...rest,
    type: 'tpm',
    ...(KeyTPM?.TPMCheckSecurebootStatusOnEnroll && { tpmCheckSecurebootStatusOnEnroll: true }),
    // As in the configuration, no options stand for the state of Secure Boot.
    pcrs: KeyTPM?.TPMOptions ? (KeyTPM.TPMOptions.PCRs ?? []) : [7],
    pubKeyPcrs: [11],
  }
}
