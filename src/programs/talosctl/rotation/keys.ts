/**
 * Keys of Kubernetes on the control planes: the one that signs tokens of service accounts, and the one that encrypts secrets in
 * etcd. While one is replaced, a document KubernetesKeysConfig holds what is accepted besides; afterwards there is none.
 */
import { createHash, createPublicKey } from 'node:crypto'
import type { ConfigContainer } from '../../../os/config/container.ts'
import { KubernetesKeysConfig } from '../../../os/secrets/documents/kubernetes-keys.ts'
import { toBase64 } from '../../../pki/certificate.ts'
import type { Round } from './rounds.ts'

/** The public key of a key, both base64 of PEM. */
export const publicKeyOf = (key: string): string =>
  toBase64(createPublicKey(Buffer.from(key, 'base64')).export({ type: 'spki', format: 'pem' }).toString())

/** The id (`kid`) of a key in the tokens it signs: SHA-256 of the public key, base64url. */
export const keyIdOf = (key: string): string =>
  createHash('sha256')
    .update(createPublicKey(Buffer.from(key, 'base64')).export({ type: 'spki', format: 'der' }))
    .digest('base64url')

/** The key id in the header of a token; undefined when it is no token. */
export function keyIdIn(token: string): string | undefined {
  const [header = ''] = token.split('.')
  try {
    const { kid } = JSON.parse(Buffer.from(header, 'base64url').toString()) as { kid?: string }
    return kid
  } catch {
    return undefined
  }
}

/** A machine with a key that is neither of the two. */
export class ForeignKey extends Error {
  override name = 'ForeignKey'
}

const keysOf = (config: ConfigContainer) => {
  const { acceptedServiceAccountKeys = [], secretboxKeys = [] } = config.find(KubernetesKeysConfig) ?? {}
  return { acceptedServiceAccountKeys, secretboxKeys }
}

type Keys = ReturnType<typeof keysOf>

/** A configuration with these keys accepted besides; the document goes when nothing is left in it. */
function withKeys(config: ConfigContainer, keys: Partial<Keys>, cluster?: object): ConfigContainer {
  const document = { apiVersion: 'v1alpha1', kind: KubernetesKeysConfig.kind }
  const left = Object.fromEntries(Object.entries({ ...keysOf(config), ...keys }).filter(([, list]) => list.length > 0))
  const patches = [
    ...(config.find(KubernetesKeysConfig) ? [{ ...document, $patch: 'delete' }] : []),
    ...(Object.keys(left).length > 0 ? [{ ...document, ...left }] : []),
    ...(cluster ? [{ cluster }] : []),
  ]
  return patches.reduce((changed, patch) => changed.patch(JSON.stringify(patch)), config)
}

/** The rounds in which the key of the service accounts is replaced. */
export const serviceAccountRounds: readonly Round<1 | 2 | 3>[] = [
  { stage: 1, name: 'accept tokens of the new key' },
  { stage: 2, name: 'sign with the new key' },
  { stage: 3, name: 'drop the old key' },
]

/** The key of the service accounts that is replaced (public) and the new one (private), base64 of PEM. */
export interface ServiceAccountKeys {
  readonly oldPublic: string
  readonly key: string
}

/** How far a control plane is with the key of the service accounts. */
export function serviceAccountStage(config: ConfigContainer, { oldPublic, key }: ServiceAccountKeys): 0 | 1 | 2 | 3 {
  const [before, after] = [keyIdOf(oldPublic), keyIdOf(key)]
  const signing = keyIdOf(config.v1alpha1?.cluster?.serviceAccount?.key ?? '')
  const accepted = keysOf(config).acceptedServiceAccountKeys.map(keyIdOf)
  if (signing === after) return accepted.includes(before) ? 2 : 3
  if (signing === before) return accepted.includes(after) ? 1 : 0
  throw new ForeignKey(`cluster.serviceAccount.key is ${signing}, neither the key that is replaced (${before}) nor the new one (${after})`)
}

/** The configuration one stage further. */
export function advanceServiceAccount(config: ConfigContainer, { oldPublic, key }: ServiceAccountKeys, stage: 1 | 2 | 3): ConfigContainer {
  const two = [oldPublic, publicKeyOf(key)].map(keyIdOf)
  const others = keysOf(config).acceptedServiceAccountKeys.filter((one) => !two.includes(keyIdOf(one)))
  if (stage === 1) return withKeys(config, { acceptedServiceAccountKeys: [...others, publicKeyOf(key)] })
  if (stage === 2) return withKeys(config, { acceptedServiceAccountKeys: [...others, oldPublic] }, { serviceAccount: { key } })
  return withKeys(config, { acceptedServiceAccountKeys: others })
}

/** The rounds in which the key of the secretbox is replaced. The last one returns to a configuration without further keys. */
export const secretboxRounds: readonly Round<1 | 2 | 3 | 4>[] = [
  { stage: 1, name: 'decrypt with the new key too' },
  { stage: 2, name: 'encrypt with the new key' },
  { stage: 3, name: 'drop the old key' },
  { stage: 4, name: 'name the new key as the only one' },
]

/** The key of the secretbox that is replaced and the new one, base64. */
export interface SecretboxKeys {
  readonly old: string
  readonly next: string
}

/** How far a control plane is with the key of the secretbox. */
export function secretboxStage(config: ConfigContainer, { old, next }: SecretboxKeys): 0 | 1 | 2 | 3 | 4 {
  const { secretboxKeys } = keysOf(config)
  const own = config.v1alpha1?.cluster?.secretboxEncryptionSecret
  if (own === next) return secretboxKeys.length > 0 ? 3 : 4
  if (own !== old) throw new ForeignKey('cluster.secretboxEncryptionSecret is neither the key that is replaced nor the new one')
  if (!secretboxKeys.includes(next)) return 0
  return secretboxKeys[0] === next ? 2 : 1
}

/** The configuration one stage further. */
export function advanceSecretbox(config: ConfigContainer, { old, next }: SecretboxKeys, stage: 1 | 2 | 3 | 4): ConfigContainer {
  const others = keysOf(config).secretboxKeys.filter((one) => one !== old && one !== next)
  if (stage === 1) return withKeys(config, { secretboxKeys: [old, next, ...others] })
  if (stage === 2) return withKeys(config, { secretboxKeys: [next, old, ...others] })
  if (stage === 3) return withKeys(config, { secretboxKeys: [next] }, { secretboxEncryptionSecret: next })
  return withKeys(config, { secretboxKeys: [] })
}
