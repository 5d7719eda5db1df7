import { expect, test } from 'bun:test'
import { costFor, measureCost } from '../../../../src/os/block/encryption/cost.ts'
import { formatOf } from '../../../../src/os/block/encryption/parameters.ts'
import {
  type EncryptionKey,
  KeyError,
  type KeySources,
  newPassphrase,
  passphraseOf,
} from '../../../../src/os/block/encryption/passphrase.ts'
import { readStateRecord, writeStateRecord } from '../../../../src/os/block/encryption/state-record.ts'

const uuid = '12345678-1234-4123-8123-567812345678'
const salt = Uint8Array.from({ length: 32 }, (_, index) => index)
const text = (bytes: Uint8Array) => Buffer.from(bytes).toString('latin1')

const derive = async (key: EncryptionKey, volume: string, sources: KeySources) =>
  text(await passphraseOf({ key, slot: key.slot, volume, sources }, undefined, {}))

test('passphrases are those of the field, byte for byte', async () => {
  expect(await derive({ slot: 0, type: 'static', staticPassphrase: 'top secret' }, 'u-data', {})).toBe('top secret')
  expect(await derive({ slot: 0, type: 'nodeID' }, 'EPHEMERAL', { machineUUID: uuid })).toBe(`${uuid}EPHEMERAL`)
  const locked = await derive({ slot: 0, type: 'nodeID', lockToState: true }, 'u-data', { machineUUID: uuid, salt })
  expect(locked).toBe(`${uuid}u-data${text(salt)}`)
})

test.each([
  ['no UUID', { slot: 0, type: 'nodeID' }, {}, 'no usable UUID'],
  ['a UUID of one character', { slot: 0, type: 'nodeID' }, { machineUUID: '00000000-0000-0000-0000-000000000001' }, 'no usable UUID'],
  ['no salt', { slot: 0, type: 'nodeID', lockToState: true }, { machineUUID: uuid }, 'salt is not there yet'],
  ['no passphrase', { slot: 0, type: 'static' }, {}, 'passphrase is empty'],
  ['another kind', { slot: 0, type: 'kms' }, {}, 'not supported'],
] as const)('with %s there is none', async (_, key, sources, reason) => {
  await expect(derive(key, 'STATE', sources)).rejects.toThrow(KeyError)
  await expect(derive(key, 'STATE', sources)).rejects.toThrow(reason)
})

test('a sealed key is random, and its passphrase is its base64 and the salt', async () => {
  const kinds = {
    kms: {
      token: 'sealed',
      seal: async (secret: Uint8Array) => ({ hidden: [...secret].reverse() }),
      unseal: async ({ hidden }: Readonly<Record<string, unknown>>) => Uint8Array.from([...(hidden as number[])].reverse()),
    },
  }
  const use = { key: { slot: 4, type: 'kms', lockToState: true }, slot: 4, volume: 'u-data', sources: { salt } }
  const { passphrase, token } = await newPassphrase(use, kinds)
  expect(passphrase.length).toBe(44 + 32)
  expect(text(passphrase.subarray(44))).toBe(text(salt))
  expect(Object.keys(token ?? {})).toEqual(['UserData', 'type', 'keyslots'])
  expect(text(await passphraseOf(use, token, kinds))).toBe(text(passphrase))
  expect(text((await newPassphrase(use, kinds)).passphrase)).not.toBe(text(passphrase))
  await expect(passphraseOf(use, undefined, kinds)).rejects.toThrow('has no token')
  await expect(passphraseOf(use, { type: 'other', keyslots: [] }, kinds)).rejects.toThrow('a token of type "other"')
  await expect(passphraseOf(use, { type: 'sealed', keyslots: [] }, kinds)).rejects.toThrow('holds no data')
  await expect(newPassphrase({ ...use, sources: {} }, kinds)).rejects.toThrow('salt is not there yet')
})

test('a derivation takes about two seconds, with at most half of the memory and at most a GiB', async () => {
  const gibibyte = 2 ** 30
  expect(costFor(50, 4, 16 * gibibyte)).toEqual({ time: 5, memory: 1 << 20, cpus: 4 })
  expect(costFor(50, 4, gibibyte)).toEqual({ time: 10, memory: 512 << 10, cpus: 4 })
  expect(costFor(1000, 2, 16 * gibibyte)).toEqual({ time: 4, memory: 64 << 10, cpus: 2 })
  expect(costFor(60_000, 1, 16 * gibibyte)).toEqual({ time: 4, memory: 32 << 10, cpus: 1 })
  let now = 0
  const clock = { elapsed: () => (now += 1000) }
  expect(await measureCost(clock, { memory: 16 * gibibyte, processors: 8 })).toEqual({ time: 4, memory: 64 << 10, cpus: 4 })
  expect(await measureCost(clock, { memory: undefined, processors: 1 })).toEqual({ time: 4, memory: 32 << 10, cpus: 1 })
})

test('the encryption of STATE is recorded in the form of the field', () => {
  const encryption = {
    provider: 'luks2',
    keys: [
      { slot: 0, type: 'static', staticPassphrase: 'a"b' },
      { slot: 1, type: 'nodeID' },
      { slot: 2, type: 'kms', kmsEndpoint: 'grpc://kms:4050' },
      { slot: 3, type: 'tpm', tpmCheckSecurebootStatusOnEnroll: true, pcrs: [0, 7], pubKeyPcrs: [11] },
    ],
    cipher: 'aes-xts-plain64',
    keySize: 512,
    blockSize: 4096,
    perfOptions: ['no_read_workqueue'],
  }
  const written = writeStateRecord(encryption)
  expect(Object.keys(JSON.parse(written))).toEqual([
    ...['EncryptionProvider', 'EncryptionKeys', 'EncryptionCipher', 'EncryptionKeySize', 'EncryptionBlockSize', 'EncryptionPerfOptions'],
  ])
  expect(JSON.parse(written).EncryptionKeys[1]).toEqual({
    ...{ KeySlot: 1, KeyStatic: null, KeyNodeID: {}, KeyKMS: null, KeyTPM: null, KeyLockToSTATE: false },
  })
  expect(readStateRecord(written)).toEqual(encryption)
  const older = '{"EncryptionProvider":"","EncryptionKeys":[{"KeyStatic":null,"KeyNodeID":{},"KeyKMS":null,"KeySlot":4,"KeyTPM":null}]}'
  expect(readStateRecord(older)).toEqual({ provider: 'luks2', keys: [{ slot: 4, type: 'nodeID' }] })
  expect(readStateRecord('null')).toBeUndefined()
  expect(() => readStateRecord('{}')).toThrow()
})

test('a new volume is encrypted as configured, else as its disk suggests', async () => {
  const kernel = (logical: number, physical?: number) =>
    ({
      block: { openDevice: async () => ({ sectorSize: logical, close: async () => {} }) },
      files: {
        readTextIfThere: (path: string) => (path.endsWith('/vda5/../queue/physical_block_size') ? physical?.toString() : undefined),
      },
    }) as unknown as Parameters<typeof formatOf>[0]
  const of = (disk: ReturnType<typeof kernel>, settings: Parameters<typeof formatOf>[2] = {}) => formatOf(disk, '/dev/vda5', settings)
  expect(await of(kernel(512))).toEqual({ cipher: 'aes-xts-plain64', keySize: 64, sectorSize: 512 })
  expect(await of(kernel(512, 4096))).toMatchObject({ sectorSize: 4096 })
  expect(await of(kernel(4096))).toMatchObject({ sectorSize: 4096 })
  expect(await of(kernel(512), { cipher: 'xchacha12,aes-adiantum-plain64', blockSize: 2048 })).toEqual({
    ...{ cipher: 'xchacha12,aes-adiantum-plain64', keySize: 32, sectorSize: 2048 },
  })
  await expect(of(kernel(4096), { blockSize: 512 })).rejects.toThrow('blocks of 512 bytes')
  await expect(of(kernel(512), { cipher: 'null' })).rejects.toThrow('no cipher "null"')
  await expect(of(kernel(512), { keySize: 128 })).rejects.toThrow('no keys of 128 bits')
})
