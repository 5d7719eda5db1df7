import { describe, expect, test } from 'bun:test'
import { parse } from 'yaml'
import { refusalsOf } from '../../../../src/os/config/apply/refusals.ts'
import type { ConfigContainer } from '../../../../src/os/config/container.ts'
import { encryptionConfiguration } from '../../../../src/os/k8s/control-plane/encryption-configuration.ts'
import { KubernetesKeysConfig } from '../../../../src/os/secrets/documents/kubernetes-keys.ts'
import { toBase64 } from '../../../../src/pki/certificate.ts'
import { newKey } from '../../../../src/pki/key.ts'
import {
  advanceSecretbox,
  advanceServiceAccount,
  ForeignKey,
  keyIdIn,
  keyIdOf,
  publicKeyOf,
  secretboxStage,
  serviceAccountStage,
} from '../../../../src/programs/talosctl/rotation/keys.ts'
import { controlPlane, secrets } from './machines.ts'

/** Whether a machine takes each configuration after the one before without --force. */
function expectTaken(configs: readonly ConfigContainer[]): void {
  const around = { store: { get: () => undefined, list: () => [] }, mode: 'container' } as const
  for (const [index, config] of configs.slice(1).entries()) expect(refusalsOf(configs[index]!, config, around)).toEqual([])
  for (const config of configs) expect(config.validate('container').errors).toEqual([])
}

describe('the key of service accounts', () => {
  const old = secrets.certs.k8sserviceaccount.key
  const key = toBase64(newKey('ecdsa').pem)
  const keys = { oldPublic: publicKeyOf(old), key }
  const stages = [controlPlane]
  for (const stage of [1, 2, 3] as const) stages.push(advanceServiceAccount(stages.at(-1)!, keys, stage))

  test('goes from stage to stage, and nothing but the new one is left', () => {
    expect(stages.map((config) => serviceAccountStage(config, keys))).toEqual([0, 1, 2, 3])
    const parts = stages.map((config) => [
      keyIdOf(config.v1alpha1?.cluster?.serviceAccount?.key ?? ''),
      (config.find(KubernetesKeysConfig)?.acceptedServiceAccountKeys ?? []).map(keyIdOf),
    ])
    const [before, after] = [keyIdOf(old), keyIdOf(key)]
    expect(parts).toEqual([
      [before, []],
      [before, [after]],
      [after, [before]],
      [after, []],
    ])
    expectTaken(stages)
    expect(stages[3]!.find(KubernetesKeysConfig)).toBeUndefined()
    expect(stages[3]!.text.replace(key, old)).toBe(controlPlane.text)
  })

  test('only public keys are accepted besides', () => {
    expect(stages.map(({ text }) => text.split(old).length - 1)).toEqual([1, 1, 0, 0])
    const withPrivate = controlPlane.patch(
      JSON.stringify({ apiVersion: 'v1alpha1', kind: 'KubernetesKeysConfig', acceptedServiceAccountKeys: [old] }),
    )
    expect(withPrivate.validate('container').errors.map(({ message }) => message)).toEqual(['not a public key: base64 of PEM is expected'])
  })

  test('a machine refuses a new one that does not accept tokens of the old', () => {
    const around = { store: { get: () => undefined, list: () => [] }, mode: 'container' } as const
    expect(refusalsOf(controlPlane, stages[3]!, around).map(({ message }) => message)).toEqual([
      'cluster.serviceAccount.key: not the one in force: the tokens of all service accounts would be refused',
    ])
  })

  test('a control plane with a third key is refused', () => {
    expect(() => serviceAccountStage(stages[3]!, { oldPublic: keys.oldPublic, key: toBase64(newKey('ecdsa').pem) })).toThrow(ForeignKey)
  })
})

test('the key id of a token is in its header', () => {
  const header = Buffer.from(JSON.stringify({ alg: 'RS256', kid: 'one' })).toString('base64url')
  expect([keyIdIn(`${header}.e30.c2ln`), keyIdIn('no token'), keyIdIn('')]).toEqual(['one', undefined, undefined])
})

describe('the key of the secretbox', () => {
  const old = controlPlane.v1alpha1?.cluster?.secretboxEncryptionSecret ?? ''
  const next = Buffer.alloc(32, 7).toString('base64')
  const keys = { old, next }
  const stages = [controlPlane]
  for (const stage of [1, 2, 3, 4] as const) stages.push(advanceSecretbox(stages.at(-1)!, keys, stage))

  /** Name → key, the one that encrypts first. */
  const providers = stages.map((config) => {
    const { secretboxEncryptionSecret = '' } = config.v1alpha1?.cluster ?? {}
    const { secretboxKeys = [] } = config.find(KubernetesKeysConfig) ?? {}
    const { resources } = parse(encryptionConfiguration({ secretboxEncryptionSecret, aesCBCEncryptionSecret: '' }, secretboxKeys))
    return resources[0].providers[0].secretbox.keys as { name: string; secret: string }[]
  })

  test('goes from stage to stage, and nothing but the new one is left', () => {
    expect(stages.map((config) => secretboxStage(config, keys))).toEqual([0, 1, 2, 3, 4])
    expectTaken(stages)
    expect(stages[4]!.text).toBe(controlPlane.text.replace(old, next))
    expect(providers.map(([first]) => first?.secret)).toEqual([old, old, next, next, next])
  })

  test.each([0, 1, 2, 3])('what a control plane writes at stage %d is read at the next one, and the other way round', (stage) => {
    const [one, other] = [providers[stage]!, providers[stage + 1]!]
    for (const [writer, reader] of [
      [one, other],
      [other, one],
    ]) {
      const { name, secret } = writer![0]!
      expect(reader!.find((each) => each.name === name)?.secret).toBe(secret)
    }
  })

  test('no name has two keys', () => {
    for (const list of providers) expect(new Set(list.map(({ name }) => name)).size).toBe(list.length)
  })

  test('a machine refuses a new one that did not encrypt before, and forgets the old', () => {
    const around = { store: { get: () => undefined, list: () => [] }, mode: 'container' } as const
    expect(refusalsOf(controlPlane, stages[4]!, around).map(({ message }) => message)).toEqual([
      'cluster.secretboxEncryptionSecret: not the one in force: the secrets in etcd could not be read any more',
    ])
  })
})
